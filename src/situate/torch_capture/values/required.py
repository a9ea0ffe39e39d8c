"""Values of inputs that a captured step counts on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

MAX_LISTED = 16
"""Numbers of a tensor that a warning shows."""

HOLDS = "the step and its plan hold for the values of input"
"""The beginning of the warning of a `Taken`."""

DRAW_ONCE = (
    "they are drawn, by capture here and anew by whatever runs the plan ('verify', 'run'), which "
    "then refuses it: give the input its values, from a file or of a torch.Generator with a seed; "
    "or, "
)
"""The part of the warning for values that are drawn."""

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""Operators that compare a tensor with a number."""

Test = tuple[str, float]
"""One of them, and the number."""


@dataclass(frozen=True)
class Example:
    """A tensor of integers or booleans among the inputs, or what a comparison says of one.

    Attributes:
        name: where it is among them, such as `'attention_mask'`.
        values: those it has when the step is captured.
        number: of the input that is compared.
        test: the comparison, if it is one.
        drawn: whether capture drew the values in place of the program, which draws others.
    """

    name: str
    values: torch.Tensor
    number: int = -1
    test: Test | None = None
    is_random: bool = False


@dataclass(frozen=True)
class RequiredValues:
    """An input whose values the captured step counts on.

    Attributes:
        number: of the input.
        name: of the input, as in `Example`, with what it is compared with, as in
            `'input_ids' == 3`, if nothing else of it counts.
        values: the only ones that it, or the comparison, may have.
        test: the comparison.
        line: `file.py:12` of the program, that looks at them.
        remedy: how to do without.
        drawn: as in `Example`.
    """

    number: int
    name: str
    values: torch.Tensor
    test: Test | None
    line: str
    remedy: str
    is_random: bool = False

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The values of this input, or what the comparison says of it."""
        return tensor if self.test is None else compare(tensor, self.test)

    @property
    def warning(self) -> str:
        """A line that says what a plan of the step holds for."""
        kind = f"{str(self.values.dtype).removeprefix('torch.')} {tuple(self.values.shape)}"
        few = self.values.numel() <= MAX_LISTED
        which = f"which are {self.values.tolist()}" if few else f"of type and shape {kind}"
        return (
            f"{HOLDS} {self.name} alone, {which}: {self.line} depends on them; "
            f"{DRAW_ONCE if self.is_random else ''}to be free of that, {self.remedy}"
        )


def compare(tensor: torch.Tensor, test: Test) -> torch.Tensor:
    """The result of a comparison, of a tensor that has values."""
    from torch.utils._mode_utils import no_dispatch

    with no_dispatch():
        result: torch.Tensor = getattr(tensor, test[0])(test[1])
    return result
