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
"""Characters of a message; of longer ones, with names without end, the two ends are shown."""


def note(text: str) -> None:
    """One line on stderr; control characters are shown, not obeyed."""
    say(printable(text, MAX_MESSAGE_LENGTH))


def fail(message: str) -> int:
    """Say what is wrong in one line; the exit status of bad input."""
    note(f"error: {message.strip()}")
    return BAD_INPUT


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """A line on stderr that says what goes on and can be rewritten; nothing off a terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    with console.status(Text(printable(what))) as status:
        yield lambda text: status.update(Text(printable(text)))
