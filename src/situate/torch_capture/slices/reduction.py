"""The way in which a step's loss is made of those of its samples: their mean, or their sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from situate.data.slices import Reduction
from situate.errors import SituateError
from situate.torch_capture.slices.call import name_of
from situate.torch_capture.slices.dependence.analysis import Dependence, Finding
from situate.torch_capture.slices.dependence.relation import Reason
from situate.torch_capture.slices.locations import place

if TYPE_CHECKING:
    from torch import fx

SAY = "say which it is, if one of the two: --slice-loss mean, or sum"

POWERS: dict[int, Reduction] = {1: "mean", 0: "sum"}
"""By the power of a slice's share of the batch that its loss counts with."""

WHY = {
    Reason.TOGETHER: "it takes in all samples",
    Reason.CLASSES: "it weighs samples by their class",
    Reason.PRODUCT: (
        "it multiplies or divides by what depends on the samples (exact: a sum, divided by a count "
        "of the whole batch that is an input)"
    ),
    Reason.NUMBER: "it has a number that changes with the batch's size in another way",
    Reason.UNPROVED: "situate cannot tell how it relates samples",
}
"""The texts of a refusal, shorter than those of a note."""


def reduction(steps: Sequence[Dependence | None]) -> Reduction:
    """The reduction of a loss.

    Args:
        steps: for each size of a slice, its dependence on the batch.

    Raises:
        SituateError: it is neither, or that cannot be told.
    """
    reductions: dict[Reduction, fx.Node] = {}
    for step in steps:
        if step is None:
            raise SituateError(
                "slices: the step runs other ops at a slice's size than at the batch's, so that "
                f"it cannot be told whether its loss is a mean or a sum over samples: {SAY}"
            )
        for finding in step.findings:
            if step.is_of_loss(finding):
                raise _unknown(finding.node, _why(finding))
        reductions[_reduction(step)] = step.loss
    first, *others = reductions
    if others:
        raise _unknown(reductions[first], "it is another in slices of another size")
    return first


def proved_reduction(step: Dependence) -> Reduction | None:
    """The reduction of a loss; None where there is no proof."""
    relation = step.relation(step.loss).summed()
    if relation.assumed or relation.kind != "reduced":
        return None
    return POWERS.get(1 if relation.power is None else relation.power)


def _reduction(step: Dependence) -> Reduction:
    loss, relation = step.loss, step.relation(step.loss).summed()
    power = 1 if relation.power is None else relation.power
    if relation.kind != "reduced":
        raise _unknown(loss, "it takes in all samples")
    if power not in POWERS:
        raise _unknown(loss, f"it grows with the batch's size to the power of {1 - power}")
    return POWERS[power]


def _why(finding: Finding) -> str:
    return WHY.get(finding.reason) or finding.reason.value.format("it")


def _unknown(node: fx.Node, why: str) -> SituateError:
    return SituateError(
        f"slices: the loss must be a mean or a sum over samples, and aten.{name_of(node)} "
        f"({place(node)}) stands in the way: {why}: {SAY}"
    )
