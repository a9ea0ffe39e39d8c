"""The standard streams of the command. Closed streams, and streams that nobody reads, become
/dev/null."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
"""Name and mode of descriptors 0, 1 and 2."""


def open_closed() -> None:
    """Open /dev/null in place of each standard stream that is closed, before another file gets its
    number and is printed into."""
    for number, (name, mode) in enumerate(STREAMS):
        try:
            os.fstat(number)
        except OSError:
            _nullify(number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - until the end


def discard(stream: TextIO) -> None:
    """Send all further output of a failing stream to /dev/null."""
    with contextlib.suppress(OSError, ValueError):
        _nullify(stream.fileno())


def say(line: str) -> None:
    """Print a line on stderr, if that is possible."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def _nullify(number: int) -> None:
    """Make a descriptor refer to /dev/null, also in child processes."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    if descriptor == number:
        os.set_inheritable(number, True)
        return
    os.dup2(descriptor, number)
    os.close(descriptor)
