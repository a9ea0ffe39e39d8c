"""User-supplied names, made safe to show."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from situate.errors import plural as plural

if TYPE_CHECKING:  # the message for a lack of memory must not load NumPy
    from situate.data.problem import Problem

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that steer a terminal or a renderer, or cannot be encoded or shown."""


def printable(name: str, width: int | None = None) -> str:
    """`name` on one line without control characters, which become escapes such as `\\x1b`.

    Names longer than `width` keep their two ends with an ellipsis between.
    """
    if width is not None and len(name) > width:
        tail = (width - 1) // 2
        name = f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"
    return "".join(_escaped(c) if unicodedata.category(c) in HIDDEN else c for c in name)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def tensor_name(problem: Problem, tensor: int) -> str:
    """A tensor's own name; the control edges that leave an op are called after that op."""
    tensors = problem.graph.tensors
    if tensor < len(tensors):
        return tensors[tensor].name
    return f"control:{problem.graph.ops[int(problem.producer[tensor])].name}"
