"""Exclusive cores and GPUs of this machine for a worker."""

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
"""Linux's file with the hardware threads of a core."""

CLAIM_ATTEMPTS, CLAIM_PAUSE_SECONDS = 600, 0.1
SOCKET_NAME_PREFIX = "\0situate"
"""Prefix of the socket names; the zero byte puts them into Linux's abstract namespace, outside the
file system."""

VISIBLE_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


class Reservation:
    """Cores and GPUs that no other worker gets until this process ends or calls `close`.

    A worker claims each by binding a Unix socket to its name, which only one process can do. Linux
    frees the name when the process ends, however it ends. This process, and all that it starts
    afterwards, runs on these cores and sees these GPUs.

    Raises:
        Unfit: too few are free.
        SituateError: see `usable_cores`.
    """

    def __init__(self, cores: int, gpus: int) -> None:
        self._claims: list[socket.socket] = []
        self._usable = {"core": [str(core) for core in usable_cores()], "GPU": visible_gpus(gpus)}
        for attempts_left in reversed(range(CLAIM_ATTEMPTS)):
            self.cores = [int(core) for core in self._claim("core", cores)]
            self.gpus = self._claim("GPU", gpus)
            if len(self.cores) == cores and len(self.gpus) == gpus:
                break
            # Two workers that each kept a part would wait for each other forever.
            self.close()
            if not attempts_left:
                raise Unfit(self._too_few(cores, gpus))
            time.sleep(CLAIM_PAUSE_SECONDS)
        # Child processes inherit the cores and the variable.
        os.sched_setaffinity(0, self.cores)
        if gpus:
            os.environ[VISIBLE_GPUS_VARIABLE] = ",".join(self.gpus)

    @property
    def place(self) -> str:
        """This machine and the reserved cores and GPUs."""
        gpus = f", GPUs {','.join(self.gpus)}" if self.gpus else ""
        return f"{socket.gethostname()}: cores {','.join(map(str, self.cores))}{gpus}"

    def close(self) -> None:
        """Release the claims; this process keeps its cores."""
        for claim in self._claims:
            claim.close()
        self._claims.clear()

    def _claim(self, kind: str, count: int) -> list[str]:
        """Claim up to `count` free ones, in their order."""
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
    """The cores of this process, at most as many as a container may use at once.

    Hardware threads of one core are neighbours in the list, so workers share few cores.

    Raises:
        SituateError: this system cannot pin a process to cores.
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
    """The GPUs that CUDA shows this process, as `CUDA_VISIBLE_DEVICES` names them; none if none is
    needed. CUDA itself is not initialised: it would then see all of them for good."""
    if not count_needed:
        return []
    import torch

    count, variable = torch.cuda.device_count(), os.environ.get(VISIBLE_GPUS_VARIABLE)
    names: Sequence[str] = variable.split(",") if variable else [str(i) for i in range(count)]
    return list(names[:count])


@contextlib.contextmanager
def _exclusive_claim() -> Iterator[None]:
    """A block for one process at a time: two that claim in turns might each get half of their
    cores."""
    while (claim := _bind_socket("turn")) is None:
        time.sleep(CLAIM_PAUSE_SECONDS / 10)
    with claim:
        yield


def _bind_socket(name: str) -> socket.socket | None:
    """A socket with this name; None if another process has it."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        # Binding is atomic in the kernel, so two processes never get the same name.
        claim.bind(f"{SOCKET_NAME_PREFIX} {name}")
    except OSError:
        claim.close()
        return None
    return claim
