"""Errors of a process that has no memory, thread or process left, and the remedy for them."""

from __future__ import annotations

import errno
import gc
import re
import resource
import traceback
from collections.abc import Iterator

from situate.host.machine import usable_memory
from situate.report.units import size_text

_MEMORY_WORDS = (
    *("std::bad_alloc", "can't allocate memory", "cannot allocate memory", "not enough memory"),
    *("out of memory", "unable to allocate", "failed to map segment"),
)
"""Parts of messages of C++, PyTorch, NumPy and the loader of shared libraries, in lower case."""

_THREAD_WORDS = ("can't start new thread", "resource temporarily unavailable")
"""Parts of the messages of Python, and of the system, that refuses a thread or a process."""


def shortage(error: BaseException) -> str | None:
    """The resource that ran out and the remedy, if `error` or an error that led to it is one of
    memory, threads or processes; else None."""
    for cause in _causes(error):
        if _is_of_memory(cause):
            _release(error)
            request = _request(cause) if cause is error else ""  # else the error's text names it
            return f"memory ran out{request}; {_limit()}"
        if _is_of_threads(cause):
            return (
                "the system starts no further thread or process: raise its limits (ulimit -u, "
                "and ulimit -v for their memory), or end other programs"
            )
    return None


def _release(error: BaseException) -> None:
    """Free the objects that the calls which raised `error` hold, so that a line can be printed."""
    for cause in _causes(error):
        traceback.clear_frames(cause.__traceback__)
        cause.__traceback__ = None
    gc.collect()


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_of_memory(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or _speaks_of(error, _MEMORY_WORDS)


def _is_of_threads(error: BaseException) -> bool:
    if isinstance(error, OSError):  # a pipe that is full has another message
        return error.errno == errno.EAGAIN and _speaks_of(error, _THREAD_WORDS)
    return _speaks_of(error, _THREAD_WORDS)


def _speaks_of(error: BaseException, words: tuple[str, ...]) -> bool:
    """True for errors of libraries; the messages of situate's own errors quote the user."""
    text = str(error).lower()
    of_library = isinstance(error, RuntimeError | ImportError | OSError | SystemError)
    return of_library and any(word in text for word in words)


def _request(error: BaseException) -> str:
    """The allocation that failed, where the error names it."""
    if bytes_named := re.search(r"tried to allocate (\d+) bytes", str(error)):
        return f" at a request of {size_text(int(bytes_named[1]))}"
    text = " ".join(str(error).split())
    return (
        f" ({text})" if isinstance(error, MemoryError) and text != "std::bad_alloc" and text else ""
    )


def _limit() -> str:
    """The memory that this process may use, and the remedy."""
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    limit = min((n for n in limits if n != resource.RLIM_INFINITY), default=None)
    memory = usable_memory()
    if limit is not None and (memory is None or limit < memory):
        return (
            f"this process may use {size_text(limit)}: raise the limit (ulimit -v), "
            "or give a smaller input"
        )
    size = "" if memory is None else f"this machine lets it use {size_text(memory)}: "
    return f"{size}end other programs, use a larger machine, or give a smaller input"
