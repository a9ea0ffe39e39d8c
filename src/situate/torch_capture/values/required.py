"""Values of inputs that a captured step depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

MAX_LISTED = 16
"""The most numbers of a tensor that a warning lists."""

HOLDS = "the step and its plan hold for the values of input"
"""The beginning of the warning of `RequiredValues`."""

DRAW_ONCE = (
    "they are drawn, by capture here and anew by whatever runs the plan ('verify', 'run'), which "
    "then refuses it: give the input its values, from a file or of a torch.Generator with a seed; "
    "or, "
)
"""The part of the warning for values that are drawn at random."""

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""Operators that compare a tensor with a number."""

Test = tuple[str, float]
"""A comparison operator, and the number."""


@dataclass(frozen=True)
class Example:
    """A tensor of integers or booleans among the inputs, or the result of its comparison with a
    number.

    Attributes:
        name: its place among the inputs, such as `'attention_mask'`.
        values: at capture.
        number: of the input that is compared.
        test: the comparison, if it is one.
        is_random: capture drew the values in place of the program, which draws others.
    """

    name: str
    values: torch.Tensor
    number: int = -1
    test: Test | None = None
    is_random: bool = False


@dataclass(frozen=True)
class RequiredValues:
    """An input whose values the captured step depends on.

    Attributes:
        number: of the input.
        name: of the input, as in `Example`; with the comparison, as in `'input_ids' == 3`, if the
            step depends on that alone.
        values: the only ones that the input, or the comparison, may have.
        test: the comparison.
        line: `file.py:12` of the program that reads them.
        remedy: how to avoid the read.
        is_random: as in `Example`.
    """

    number: int
    name: str
    values: torch.Tensor
    test: Test | None
    line: str
    remedy: str
    is_random: bool = False

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The values of this input, or the result of its comparison."""
        return tensor if self.test is None else compare(tensor, self.test)

    @property
    def warning(self) -> str:
        """A line that says for which values a plan of the step holds."""
        kind = f"{str(self.values.dtype).removeprefix('torch.')} {tuple(self.values.shape)}"
        few = self.values.numel() <= MAX_LISTED
        which = f"which are {self.values.tolist()}" if few else f"of type and shape {kind}"
        return (
            f"{HOLDS} {self.name} alone, {which}: {self.line} depends on them; "
            f"{DRAW_ONCE if self.is_random else ''}to be free of that, {self.remedy}"
        )


def compare(tensor: torch.Tensor, test: Test) -> torch.Tensor:
    """The result of a comparison, for a tensor that has values."""
    from torch.utils._mode_utils import no_dispatch

    # Capture's fake mode would return a tensor without values.
    with no_dispatch():
        result: torch.Tensor = getattr(tensor, test[0])(test[1])
    return result
