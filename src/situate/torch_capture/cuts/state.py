"""Parts of parameters: each is held once, by the device that reads and updates it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class StatePart:
    """A part of a parameter.

    Attributes:
        of: the name of the parameter.
        number: of the part, from 0.
        dim: the dimension that is divided.
        outer: the number of its ranges of equal length, each of which is divided alike.
        begin, end: of the part within a range.
    """

    of: str
    number: int
    dim: int
    outer: int
    begin: int
    end: int

    @property
    def name(self) -> str:
        """The name of the part."""
        return self.of_copy(self.of)

    def of_copy(self, name: str) -> str:
        """The name of the same part of a copy of the parameter."""
        return f"part{self.number}/{name}"

    def view(self, whole: torch.Tensor) -> torch.Tensor:
        """The part, as a view of the whole.

        With several ranges, the view has one more dimension, which counts them.
        """
        dim = self.dim
        if self.outer > 1:
            before, after = whole.shape[:dim], whole.shape[dim + 1 :]
            whole = whole.view(*before, self.outer, whole.shape[dim] // self.outer, *after)
            dim += 1
        return whole.narrow(dim, self.begin, self.end - self.begin)
