"""Notes and errors on stderr, beside the answer on stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from situate.host.streams import say
from situate.report.text import printable

FAILED = 1
BAD_INPUT = 2
INFEASIBLE = 3
DIFFERS = 4
INTERRUPTED = 130
"""Exit statuses of commands; docs/command-line.md explains them."""

MAX_MESSAGE_LENGTH = 1500
"""Characters of a message. Longer ones, with very long names, lose their middle."""


def note(text: str) -> None:
    """Print one line on stderr, with control characters escaped."""
    say(printable(text, MAX_MESSAGE_LENGTH))


def fail(message: str) -> int:
    """Print an error in one line; returns the exit status of bad input."""
    note(f"error: {message.strip()}")
    return BAD_INPUT


@contextmanager
def working(task: str) -> Iterator[Callable[[str], None]]:
    """A status line on stderr while a task runs; yields a function that changes it.

    Off a terminal it prints nothing.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    with console.status(Text(printable(task))) as status:
        yield lambda text: status.update(Text(printable(text)))
