"""Cores and GPUs of this machine that a worker owns: who asks here gets none that another has."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from situate.errors import SituateError
from situate.evaluators.workers.workers import Unfit
from situate.host.machine import usable_cpus

SIBLINGS_FILE = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
"""The file in which Linux lists the hardware threads of a core."""

CLAIM_ATTEMPTS, CLAIM_PAUSE_SECONDS = 600, 0.1
"""Times to look for what is free, and seconds between them: a worker that was killed just now may
still hold it, or another search may be about to end."""

SOCKET_NAME_PREFIX = "\0situate"
"""The beginning of the names; the zero makes them Linux's own, outside all folders."""

VISIBLE_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


class Reservation:
    """So many cores and GPUs, which are nobody else's until this process ends or `close`.

    Each is a name that a process can bind a Unix socket to, and no second one: Linux forgets it
    with the process, however that ends. This process, and what it starts from then on, runs on
    these cores and sees these GPUs.

    Raises:
        Unfit: fewer are free.
        SituateError: as `usable_cores`.
    """

    def __init__(self, cores: int, gpus: int) -> None:
        self._claims: list[socket.socket] = []
        self._usable = {"core": [str(core) for core in usable_cores()], "GPU": visible_gpus(gpus)}
        for attempts_left in reversed(range(CLAIM_ATTEMPTS)):
            self.cores = [int(core) for core in self._claim("core", cores)]
            self.gpus = self._claim("GPU", gpus)
            if len(self.cores) == cores and len(self.gpus) == gpus:
                break
            self.close()
            if not attempts_left:
                raise Unfit(self._too_few(cores, gpus))
            time.sleep(CLAIM_PAUSE_SECONDS)
        os.sched_setaffinity(0, self.cores)
        if gpus:
            os.environ[VISIBLE_GPUS_VARIABLE] = ",".join(self.gpus)

    @property
    def place(self) -> str:
        """This machine, and what is owned of it."""
        gpus = f", GPUs {','.join(self.gpus)}" if self.gpus else ""
        return f"{socket.gethostname()}: cores {','.join(map(str, self.cores))}{gpus}"

    def close(self) -> None:
        """Let others have them; this process stays where it is."""
        for claim in self._claims:
            claim.close()
        self._claims.clear()

    def _claim(self, kind: str, count: int) -> list[str]:
        """As many as are free, in their order, up to `count`."""
        names: list[str] = []
        with _exclusive_claim():
            for name in self._usable[kind]:
                if len(names) < count and (claim := _bind_socket(f"{kind} {name}")):
                    self._claims.append(claim)
                    names.append(name)
        return names

    def _too_few(self, cores: int, gpus: int) -> str:
        there = ", ".join(f"{len(names)} {kind}s" for kind, names in self._usable.items())
        return (
            f"found no {cores} cores and {gpus} GPUs on {socket.gethostname()!r} that no other "
            f"worker has; it has {there}: ask for fewer workers"
        )


def usable_cores() -> list[int]:
    """The cores of this process, hardware threads of one beside each other, so that workers share
    as few as possible; no more than a container lets run at once.

    Raises:
        SituateError: this system keeps no process on a core.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise SituateError("--workers: only Linux keeps what a worker runs on cores of its own")
    cores = sorted(os.sched_getaffinity(0), key=lambda core: (_first_sibling(core), core))
    return cores[: usable_cpus()]


def _first_sibling(core: int) -> int:
    try:
        match = re.match(r"\d+", Path(SIBLINGS_FILE.format(core)).read_text())
    except OSError:
        return core
    return int(match[0]) if match else core


def visible_gpus(count_needed: int) -> list[str]:
    """The GPUs that CUDA shows this process, as `CUDA_VISIBLE_DEVICES` names them; not looked for
    where none is wanted. CUDA itself is not started: it would go on seeing all of them."""
    if not count_needed:
        return []
    import torch

    count, variable = torch.cuda.device_count(), os.environ.get(VISIBLE_GPUS_VARIABLE)
    names: Sequence[str] = variable.split(",") if variable else [str(i) for i in range(count)]
    return list(names[:count])


@contextlib.contextmanager
def _exclusive_claim() -> Iterator[None]:
    """One process at a time: two that take cores by turns would both have parts of two."""
    while (claim := _bind_socket("turn")) is None:
        time.sleep(CLAIM_PAUSE_SECONDS / 10)
    with claim:
        yield


def _bind_socket(name: str) -> socket.socket | None:
    """A socket of this name; None where another process has it."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"{SOCKET_NAME_PREFIX} {name}")
    except OSError:
        claim.close()
        return None
    return claim
