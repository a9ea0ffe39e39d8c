"""Errors of a process that gets no more memory, in one line with the remedy."""

from __future__ import annotations

import errno
import resource

SHORT = (
    "can't allocate memory",  # PyTorch on a CPU, with the bytes that it asked for
    "not enough memory",
    "out of memory",  # PyTorch on a GPU
    "can't start new thread",
    "cannot allocate memory",
    "resource temporarily unavailable",
    "bad_alloc",
)
"""Parts of what libraries say where memory, or another thread, is not to be had."""


def memory_line(error: BaseException) -> str | None:
    """The line on an error that comes of short memory; None for any other."""
    if isinstance(error, MemoryError):
        return _line(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOMEM, errno.EAGAIN):
        return _line(error)
    if isinstance(error, RuntimeError) and any(part in str(error).lower() for part in SHORT):
        return _line(error)
    return None


def _line(error: BaseException) -> str:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    limited = limit != resource.RLIM_INFINITY
    remedy = (
        f"the process may use {limit / 2**30:.3g} GiB: raise that limit (ulimit -v)"
        if limited
        else "free memory, or use a machine with more"
    )
    reason = " ".join(str(error).split("\n", 1)[0].split())
    return f"out of memory{f': {reason}' if reason else ''}: {remedy}"
