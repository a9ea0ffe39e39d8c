"""Names of the blocks of a step that run their forward pass again before their backward pass."""

from __future__ import annotations

from collections.abc import Sequence

from situate.errors import SituateError
from situate.validation import check

ALL = "all"
"""Stands for the blocks by which a step needs least memory."""


def parse_blocks(text: str) -> tuple[str, ...]:
    """The names in a text such as `layers.*,head`.

    Raises:
        SituateError: an empty name.
    """
    check(text, str, "recompute")
    return checked_blocks(tuple(name.strip() for name in text.split(",")))


def checked_blocks(names: Sequence[str]) -> tuple[str, ...]:
    """The names of blocks.

    Raises:
        SituateError: they are no list of texts, or one is empty.
    """
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise SituateError(
            f"recompute: must be a list of names of modules, such as ['layers.*'], got {names!r}"
        )
    if not all(names):
        raise SituateError("recompute: a name is empty: give paths of modules, such as layers.*")
    return tuple(names)
