"""The processors and memory of this machine that this process may use, within the limits of a
container or a batch system; the threads that a caller allows; and the age of this process."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
STATUS = Path("/proc/self/stat")


def cpu_name() -> str:
    """The name of this machine's processor."""
    for line in _lines(Path("/proc/cpuinfo")):
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return " ".join(value.split())
    return platform.processor() or platform.machine() or "CPU"


def usable_cpus() -> int:
    """Threads that this process may run at once, at full rate."""
    affine = hasattr(os, "sched_getaffinity")
    cpus = len(os.sched_getaffinity(0)) if affine else os.cpu_count() or 1
    return max(1, int(min(cpus, *_quotas(), math.inf)))


def usable_memory() -> int | None:
    """Bytes of main memory, or None (unlimited) where the system does not say."""
    # Version 1 writes no limit as a number near 2^63, which is never the least.
    limits = [*_control("memory", "memory.max"), *_control("memory", "memory.limit_in_bytes")]
    limits_in_bytes = [int(limit) for limit in limits if limit != "max"]
    return min([*limits_in_bytes, *_main_memory()], default=None)


def process_start() -> float | None:
    """The time in seconds at which this process started, as `time.time`, or None where the system
    does not say."""
    for line in _lines(STATUS):
        # The name of the program, in parentheses, may hold spaces. The third field follows it, and
        # the 22nd is the start in ticks after that of the machine.
        ticks = int(line.rpartition(")")[2].split()[19])
        machine_start = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return machine_start + ticks / os.sysconf("SC_CLK_TCK")
    return None


def _main_memory() -> Iterator[int]:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemTotal:"):
            # The kernel writes kB and means KiB.
            yield int(line.split()[1]) * 1024
            return
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _quotas() -> Iterator[float]:
    """Processors' worth of time that this process's control groups have."""
    for both in _control("cpu", "cpu.max"):
        quota, period = both.split()
        if quota != "max":
            yield int(quota) / int(period)
    quotas, periods = _control("cpu", "cpu.cfs_quota_us"), _control("cpu", "cpu.cfs_period_us")
    for quota, period in zip(quotas, periods, strict=True):
        # A quota of -1 is none.
        if int(quota) > 0:
            yield int(quota) / int(period)


def _control(controller: str, file: str) -> Iterator[str]:
    """The lines of a control file in this process's group and in those around it, in version 2 of
    control groups or version 1."""
    for line in _lines(MEMBERSHIP):
        _, controllers, path = line.split(":", 2)
        # A line of version 2 names no controllers: its one hierarchy has them all.
        if controllers and controller not in controllers.split(","):
            continue
        root = CGROUPS / controller if controllers else CGROUPS
        group = root / path.lstrip("/")
        for around in (group, *group.parents):
            if around.is_relative_to(root):
                yield from _lines(around / file)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


# The limit of threads, for code that takes no number of them.
# A context variable, because searches in several threads have a limit each.
_limit: ContextVar[int | None] = ContextVar("_limit", default=None)


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Within the block, `thread_limit` is no more than this."""
    outside = _limit.get()
    token = _limit.set(threads if outside is None else min(threads, outside))
    try:
        yield
    finally:
        _limit.reset(token)


def thread_limit(threads: int) -> int:
    """This number of threads, or fewer if the caller allows no more."""
    limit = _limit.get()
    return threads if limit is None else min(threads, limit)
