"""Straight-line code: where each local name is read last, and what may be overwritten then."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

_LOCAL = re.compile(r"\bv\d+\b")

OUTSIDE_MEMORY = ""
"""The memory of what a step must not overwrite: state, inputs, channels."""


@dataclass(frozen=True)
class Line:
    """A line of code.

    Attributes:
        over: local names it may overwrite where nobody reads them later, each with the line that
            does so.
        op: what it is part of; None beside the ops.
        direct: what it is where results may be written into channels.
        strides: of the values that it makes, by local name, as they were captured.
    """

    text: str
    over: tuple[tuple[str, str], ...] = ()
    op: int | None = None
    direct: str | None = None
    strides: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def assigned(self) -> list[str]:
        """The local names that it assigns."""
        names, assigns, _ = self.text.partition(" = ")
        return local_names(names) if assigns else []


@dataclass(frozen=True)
class ExecutedLine:
    """A line as it is executed.

    Attributes:
        over: the local name that its result is written over, if any.
        last: the local names that nobody reads after it.
    """

    line: Line
    text: str
    over: str | None
    last: tuple[str, ...]

    @property
    def direct(self) -> bool:
        """True if its result is written into a channel."""
        return self.text == self.line.direct

    def texts(self, laid_out: bool) -> list[str]:
        """The line, what lays out its values as they were captured where that is asked for, and
        the deletion of what it was the last to read."""
        layouts = self.line.strides if laid_out else ()
        lines = [f"{name} = laid_out({name}, {strides})" for name, strides in layouts]
        return [self.text, *lines, *([f"del {', '.join(self.last)}"] if self.last else [])]


def local_names(text: str) -> list[str]:
    """The local names in a line."""
    return _LOCAL.findall(text)


def straight_line(
    lines: Sequence[Line],
    memory: Mapping[str, str],
    outside: Collection[str],
    direct: bool = True,
) -> list[ExecutedLine]:
    """The lines, each with the local names that none after it reads.

    Args:
        memory: by local name, the name of the memory it is in; views share their source's.
        outside: memory that a step must not overwrite.
        direct: write into channels where lines know how.
    """
    executed: list[ExecutedLine] = []
    # From the last line to the first: a name met for the first time is read there for the last.
    later: set[str] = set()
    reserved = set(outside)
    for line in reversed(lines):
        text, over = line.text, None
        if direct and line.direct is not None:
            text = line.direct
        elif over := _overwritten(line, reserved, memory):
            text = dict(line.over)[over]
        last = set(local_names(text)) - later
        later |= last
        # A view that is read later keeps the memory of its source from being overwritten here.
        reserved |= {memory[name] for name in last}
        executed.append(ExecutedLine(line, text, over, tuple(sorted(last))))
    return executed[::-1]


def _overwritten(line: Line, reserved: set[str], memory: Mapping[str, str]) -> str | None:
    """The first name whose memory is not taken, by what reads it later or from outside, and of
    which the line reads no other view: a kernel would read there what it has just written."""
    for name, text in line.over:
        here = memory.get(name, OUTSIDE_MEMORY)
        # An elementwise kernel reads each element before it writes it, but not those of other
        # views.
        others = {
            memory[other] for other in local_names(text) if other not in (name, *line.assigned)
        }
        if here not in reserved and here not in others:
            return name
    return None
