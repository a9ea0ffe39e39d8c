"""Straight-line code: which local names are read last where, and what may be overwritten then."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

_LOCAL = re.compile(r"\bv\d+\b")

OUTSIDE = ""
"""The memory of what a step must not overwrite: state, inputs, channels."""


@dataclass(frozen=True)
class Line:
    """A line of code.

    Attributes:
        over: local names it may overwrite where nobody reads them later, each with the line that
            does so.
    """

    text: str
    over: tuple[tuple[str, str], ...] = ()


def local_names(text: str) -> list[str]:
    """The local names in a line."""
    return _LOCAL.findall(text)


def straightened(
    lines: Sequence[Line], memory: Mapping[str, str], outside: Collection[str]
) -> list[str]:
    """The lines, each followed by the deletion of the local names that none after it reads.

    Args:
        memory: by local name, the name of the memory it is in; views share their source's.
        outside: memory that a step must not overwrite.
    """
    found: list[str] = []
    later: set[str] = set()
    for line in reversed(lines):
        text = _chosen(line, {memory[name] for name in later} | set(outside), memory)
        last = set(local_names(text)) - later
        if last:
            found.append(f"del {', '.join(sorted(last))}")
            later |= last
        found.append(text)
    return found[::-1]


def _chosen(line: Line, taken: set[str], memory: Mapping[str, str]) -> str:
    for name, text in line.over:
        if memory.get(name, OUTSIDE) not in taken:
            return text
    return line.text
