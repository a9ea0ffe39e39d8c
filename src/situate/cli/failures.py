"""Errors of a command as one line on stderr, with the remedy, and an exit status.

A process may have no memory, thread or process left, in its own code or in a library's thread.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import re
import resource
import select
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from situate.cli.terminal import FAILED, fail, note
from situate.errors import MissingExtra, SituateError
from situate.host.machine import usable_memory
from situate.host.streams import discard
from situate.report.units import size_text

_MEMORY_WORDS = (
    *("std::bad_alloc", "can't allocate memory", "cannot allocate memory", "not enough memory"),
    *("out of memory", "unable to allocate", "failed to map segment"),
)
"""Parts of messages of C++, PyTorch, NumPy and the loader of shared libraries, in lower case."""

_THREAD_WORDS = ("can't start new thread", "resource temporarily unavailable")
"""Parts of messages of Python, or of the system, when it refuses a thread or a process."""

_PLAIN_WORDS = (
    ("a valid integer, unable to parse string as an integer", "a whole number, such as 10"),
    ("a valid number, unable to parse string as a number", "a number, such as 0.1"),
    ("Input should be ", "must be "),
)
"""Words of the library that parses values, and plainer ones."""


def failure_status(error: Exception) -> int:
    """The exit status of an error, after its line on stderr.

    Raises:
        Exception: the error again, if it is a bug of situate.
    """
    if (reason := shortage(error)) is not None:
        own = isinstance(error, SituateError) and not isinstance(error, MissingExtra)
        return fail(f"{error}; {reason}" if own else reason)
    if isinstance(error, SituateError):
        return fail(str(error))
    if isinstance(error, OSError):
        return _broken(error)
    if isinstance(error, RecursionError):
        return fail(f"the input is too deeply nested: {error}")
    raise error


def plain_message(message: str) -> str:
    """A parser's message about a value, in plain words."""
    for words, plain in _PLAIN_WORDS:
        message = message.replace(words, plain)
    return message


def _broken(error: OSError) -> int:
    """The status after a failed read or write; silent if the reader of stdout is gone."""
    # `situate ... | head` closes stdout on purpose; another broken pipe is an error.
    silent = isinstance(error, BrokenPipeError) and _is_unread()
    discard(sys.stdout)
    if silent:
        return FAILED
    return fail(f"{error.filename or 'output'}: {error.strerror or error}")


def _is_unread() -> bool:
    """True if a reader has closed the pipe of stdout."""
    poll = select.poll()
    with contextlib.suppress(OSError):
        poll.register(sys.stdout, 0)  # poll reports errors without being asked for them
    return bool(poll.poll(0))


@contextmanager
def thread_errors() -> Iterator[list[str]]:
    """Reports an uncaught error of a thread in one line on stderr; yields these lines."""
    lines: list[str] = []

    def report(error: threading.ExceptHookArgs) -> None:
        if error.exc_type is SystemExit:
            return
        name = error.thread.name if error.thread is not None else "a thread"
        lines.append(f"{name}: {_thread_reason(error)}")
        note(f"error: {lines[-1]}")

    # Libraries start threads of their own, such as TensorBoard's writer; their errors would print a
    # traceback and leave the status 0.
    before, threading.excepthook = threading.excepthook, report
    try:
        yield lines
    finally:
        threading.excepthook = before


def _thread_reason(arguments: threading.ExceptHookArgs) -> str:
    error = arguments.exc_value
    if error is not None and (reason := shortage(error)) is not None:
        return reason
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{arguments.exc_type.__name__}: {error}".strip().rstrip(":")


def shortage(error: BaseException) -> str | None:
    """The resource that ran out and the remedy, if `error` or one of its causes is a lack of
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
    """Free the objects in the stack frames of an error, so that a line can be printed."""
    for cause in _causes(error):
        # Frames hold the arrays that filled memory; without them a line can be printed.
        traceback.clear_frames(cause.__traceback__)
        cause.__traceback__ = None
    gc.collect()


def _causes(error: BaseException) -> Iterator[BaseException]:
    visited: set[int] = set()
    cause: BaseException | None = error
    # A cause may be raised again from its own effect, which makes a circle.
    while cause is not None and id(cause) not in visited:
        visited.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_of_memory(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or _mentions(error, _MEMORY_WORDS)


def _is_of_threads(error: BaseException) -> bool:
    if isinstance(error, OSError):  # EAGAIN of a full pipe has another message
        return error.errno == errno.EAGAIN and _mentions(error, _THREAD_WORDS)
    return _mentions(error, _THREAD_WORDS)


def _mentions(error: BaseException, words: tuple[str, ...]) -> bool:
    """True if a library's error has one of the words. Errors of situate quote their user."""
    text = str(error).lower()
    of_library = isinstance(error, RuntimeError | ImportError | OSError | SystemError)
    return of_library and any(word in text for word in words)


def _request(error: BaseException) -> str:
    """The failed allocation, if the error names it."""
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
