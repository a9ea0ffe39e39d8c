"""Straight-line code: the last read of each local name, and results written over arguments."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

_LOCAL = re.compile(r"\bv\d+\b")

OUTSIDE_MEMORY = ""
"""The memory that a step must not overwrite: state, inputs, channels."""


@dataclass(frozen=True)
class Line:
    """A line of code.

    Attributes:
        over: local names it may overwrite if no later line reads them, each with the text for that.
        op: its op; None for a line outside ops.
        direct: the text that writes results into channels.
        strides: captured strides of its results, by local name.
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
        over: the local name that its result overwrites, if any.
        last: the local names that no later line reads.
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
        """The line, then on request the restoration of captured strides, then the deletion of names
        that it reads last."""
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
    """The lines to execute, each with the local names that no later line reads.

    Args:
        memory: by local name, the name of its memory; views share their source's.
        outside: memory that a step must not overwrite.
        direct: write into channels where lines can.
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
    """The first name that the line may overwrite.

    No later line or outside reader may need its memory, and the line itself must read no other view
    of it, or a kernel would read its own results.
    """
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
