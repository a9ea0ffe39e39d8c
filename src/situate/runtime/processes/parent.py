"""A worker ends with the process that started it, however that ended."""

from __future__ import annotations

import os
import select
import threading
import time

POLL_SECONDS = 0.1
"""Seconds between two looks whether the parent is there, on a system that does not tell."""

PARENT_VARIABLE = "SITUATE_PARENT"
"""Variable of the environment that holds the number of the process that started this one."""


def die_with_parent() -> None:
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
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        ended.poll()
    os.close(descriptor)
