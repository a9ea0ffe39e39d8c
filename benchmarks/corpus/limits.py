"""A process for each row, which ends in time whatever it does."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

Row = dict[str, Any]
Work = Callable[[Callable[[Row], None]], None]


def within(work: Work, seconds: float, nbytes: int) -> Row:
    """Columns that a process told before it ended; where it did not end by itself, or raised what
    it should not, the outcome is `wrong` and the message says so.

    Args:
        work: of the process; it takes the function that tells columns.
        seconds: wall time.
        nbytes: of address space.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        ours.close()
        _serve(work, theirs, nbytes)
    theirs.close()
    row, ended = _gather(ours, time.monotonic() + seconds)
    if not ended:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    stage = row.pop("stage", "start")
    if stage != "end" and "failed" not in row and row.get("outcome") in (None, "captured"):
        how = f"not done in {seconds:g} s" if not ended else f"ended with status {status}"
        row |= {"outcome": "wrong", "message": f"{stage}: {how}"}
    row.pop("failed", None)
    return row


def _serve(work: Work, out: Connection, nbytes: int) -> None:
    """Do the work and end, without the parent's cleanup."""
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (nbytes, nbytes))
    try:
        work(out.send)
    except BaseException as error:
        lines = str(error).strip().splitlines()
        text = f"raised {type(error).__name__}: {lines[0] if lines else ''}"
        out.send({"outcome": "wrong", "message": text, "failed": True})
    finally:
        out.close()
        os._exit(0)


def _gather(pipe: Connection, deadline: float) -> tuple[Row, bool]:
    """The row that was sent, and whether the process closed its end in time."""
    row: Row = {}
    with pipe:
        while pipe.poll(max(0.0, deadline - time.monotonic())):
            try:
                row |= pipe.recv()
            except EOFError:
                return row, True
    return row, False
