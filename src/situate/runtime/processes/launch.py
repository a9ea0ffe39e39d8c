"""Starts and ends the processes of devices: fresh interpreters, which find what this one finds."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

from situate.runtime.processes.signals import HeldSignals

PROLOGUE = "from situate.runtime.processes.launch import _die_with_parent; _die_with_parent()\n"
"""The first lines of a process: it must not outlive this one, which may end at any time."""

EPILOGUE = "\nimport os; os._exit(0)"
"""The last lines of a process: it is gone at once, where Python would walk all of PyTorch
before."""


class ChildProcesses:
    """Processes that are ended together: when that is said, when nobody refers to this any more, or
    when Python ends. Signals wait while one is started, so that none runs and is not known here,
    and while they are ended."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        weakref.finalize(self, _kill_all, self._processes)

    def start(
        self,
        code: str,
        arguments: Sequence[str],
        descriptors: Sequence[int],
        *,
        threads: int | None,
        name: str,
        quiet: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start one more; see `launch_process`."""
        with HeldSignals():
            process = launch_process(
                code, arguments, descriptors, threads=threads, name=name, quiet=quiet
            )
            self._processes.append(process)
        return process

    def end_one(self, process: subprocess.Popen[bytes]) -> None:
        """End one of them; nothing is left of it."""
        with HeldSignals():
            one = [process]
            _kill_all(one)
            self._processes.remove(process)

    def end(self) -> None:
        """End all; nothing is left of them."""
        _kill_all(self._processes)


def _kill_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill them and all that they started, and wait until they are gone."""
    with HeldSignals():
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        # All are killed before one is waited for, so that they end at once.
        for process in processes:
            process.wait()
        processes.clear()


def launch_process(
    code: str,
    arguments: Sequence[str],
    descriptors: Sequence[int],
    *,
    threads: int | None,
    name: str,
    quiet: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that Ctrl-C is for the caller, who ends it.

    Args:
        code: what it executes, with these arguments behind it.
        descriptors: that it keeps.
        threads: that its kernels may use from the start; None for as many as there are cores.
        name: of the device, which it finds in SITUATE_DEVICE.
        quiet: leave out what it prints.
    """
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if threads is not None else ()
    output = subprocess.DEVNULL if quiet else None
    return subprocess.Popen(
        # -P keeps the current directory out of the path, where a file could hide a module.
        [sys.executable, "-P", "-c", PROLOGUE + code + EPILOGUE, *arguments],
        pass_fds=descriptors,
        env={
            **os.environ,
            **dict.fromkeys(counts, str(threads)),
            "PYTHONPATH": os.pathsep.join(_module_path()),
            "SITUATE_DEVICE": name,
            PARENT_VARIABLE: str(os.getpid()),
        },
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def _module_path() -> list[str]:
    """The folders where this process looks for modules, this package's first if it is elsewhere.
    Empty means the current directory, which is only looked through where this process does so."""
    package = str(Path(__file__).parents[3])
    folders = [entry or os.getcwd() for entry in sys.path]
    return folders if package in folders else [package, *folders]


POLL_SECONDS = 0.1
"""Seconds between two looks whether the parent is there, on a system that does not tell."""

PARENT_VARIABLE = "SITUATE_PARENT"
"""Variable of the environment that holds the number of the process that started this one."""


def _die_with_parent() -> None:
    """End this process soon after its parent, also in the middle of a step, and at once where the
    parent is gone already. The kernel could see to it (PR_SET_PDEATHSIG), but takes the thread that
    started a process for its parent."""
    parent = int(os.environ[PARENT_VARIABLE])
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    _wait_for_end(parent)
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)


def _wait_for_end(parent: int) -> None:
    """Return when the parent ends; at once where Linux is none or too old, or it ended before.
    Looking every so often would wake as many processes as there are, each from a cold cache."""
    if not hasattr(os, "pidfd_open"):
        return
    try:
        descriptor = os.pidfd_open(parent)
    except OSError:
        return
    if os.getppid() == parent:  # else the number may be that of another process by now
        end_of_parent = select.poll()
        end_of_parent.register(descriptor, select.POLLIN)
        end_of_parent.poll()
    os.close(descriptor)
