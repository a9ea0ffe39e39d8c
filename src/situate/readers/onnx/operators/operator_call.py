"""One call of an operator, with the types and contents of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from situate.readers.onnx.types import Shape, element, sizes_of


@dataclass(frozen=True)
class Call:
    """A node, and types and contents of its inputs by place; None if unknown."""

    node: Any
    kinds: Sequence[Any]
    contents: Sequence[Any]

    def has(self, place: int) -> bool:
        """True if the input is present."""
        return place < len(self.kinds) and self.kinds[place] is not None

    def shape(self, place: int) -> Shape:
        """The shape of an input; empty if it is left out."""
        return sizes_of(self.kinds[place]) if self.has(place) else ()

    def element(self, *places: int) -> int:
        """The element type of the first present one of these inputs; 0 if none is present."""
        return next((element(self.kinds[place]) for place in places if self.has(place)), 0)

    def number(self, attribute: str, default: int = 0) -> int:
        """An attribute that is a whole number."""
        return next((int(a.i) for a in self.node.attribute if a.name == attribute), default)

    def required(self, attribute: str) -> int:
        """An attribute that is a whole number and that the operator cannot do without.

        Raises:
            LookupError: the node does not have it.
        """
        if all(a.name != attribute for a in self.node.attribute):
            raise LookupError(f"lacks {attribute}")
        return self.number(attribute)

    def numbers(self, attribute: str) -> list[int]:
        """An attribute that is a list of whole numbers."""
        return next((list(a.ints) for a in self.node.attribute if a.name == attribute), [])
