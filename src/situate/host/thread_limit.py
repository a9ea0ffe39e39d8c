"""The limit of threads that a caller set, for code that it does not hand one to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_limit: ContextVar[int | None] = ContextVar("_limit", default=None)


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Within it `thread_limit` is no more than this."""
    outside = _limit.get()
    token = _limit.set(threads if outside is None else min(threads, outside))
    try:
        yield
    finally:
        _limit.reset(token)


def thread_limit(threads: int) -> int:
    """As many as given, but no more than the caller allows."""
    limit = _limit.get()
    return threads if limit is None else min(threads, limit)
