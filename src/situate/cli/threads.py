"""Errors in threads, such as those of libraries: one line each, and an exit status."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from situate.cli.shortage import shortage
from situate.cli.terminal import note


@contextmanager
def reported() -> Iterator[list[str]]:
    """Says on stderr, in one line, what a thread raises and nobody catches; yields these lines."""
    lines: list[str] = []

    def report(raised: threading.ExceptHookArgs) -> None:
        if raised.exc_type is SystemExit:
            return
        name = raised.thread.name if raised.thread is not None else "a thread"
        lines.append(f"{name}: {_reason(raised)}")
        note(f"error: {lines[-1]}")

    before, threading.excepthook = threading.excepthook, report
    try:
        yield lines
    finally:
        threading.excepthook = before


def _reason(raised: threading.ExceptHookArgs) -> str:
    error = raised.exc_value
    if error is not None and (reason := shortage(error)) is not None:
        return reason
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{raised.exc_type.__name__}: {error}".strip().rstrip(":")
