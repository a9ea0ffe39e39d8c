"""The standard streams of the command: one that is closed, or that nobody reads, is as good as
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
    """Let everything that is still written to a stream which fails go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        _nullify(stream.fileno())


def say(line: str) -> None:
    """Print a line on stderr, where that can be printed to."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def _nullify(number: int) -> None:
    """Make a descriptor one of /dev/null, which processes that are started inherit."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    if descriptor == number:
        os.set_inheritable(number, True)
        return
    os.dup2(descriptor, number)
    os.close(descriptor)
