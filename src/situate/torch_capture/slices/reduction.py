"""The way in which a step's loss is made of those of its samples: their mean, or their sum."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from situate.data.slices import Reduction
from situate.errors import SituateError
from situate.torch_capture.slices.call import given, name_of
from situate.torch_capture.slices.sizes import Sizes

if TYPE_CHECKING:
    from torch import fx

SAY = "say which it is, if one of the two: --slice-loss mean, or sum"

SAME = frozenset(
    {"view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "expand", "detach", "alias"}
    | {"clone", "_to_copy", "neg", "mean", "sum", "stack", "cat", "add", "sub", "select"}
)
"""Names of operators that are linear in each of their inputs, and that have no numbers that change
this; of `mean` and `sum` where nothing that they read grows with the batch."""


def reduction(sizes: Sizes, loss: fx.Node) -> Reduction:
    """The reduction of a loss, by the power of the batch's size that it grows with.

    Raises:
        SituateError: it is neither, or that cannot be told.
    """
    if not sizes.comparable:
        raise SituateError(
            "slices: the step runs other ops at a slice's size than at the batch's, so that it "
            f"cannot be told whether its loss is a mean or a sum over samples: {SAY}"
        )
    power = _power(sizes, loss)
    if power not in (0, 1):
        raise _unknown(loss, f"it grows with the batch's size to the power of {power}")
    return "sum" if power else "mean"


def _power(sizes: Sizes, node: fx.Node) -> int:
    """The power of the batch's size that a number grows with which is made of all samples."""
    if node not in sizes.of_samples:
        return 0
    if node.target is operator.getitem:
        return _power(sizes, node.args[0])  # type: ignore[arg-type]
    name = name_of(node)
    if sizes.reads_growing(node) and not sizes.growing(node):
        return _of_reduction(node, name)
    if name in ("mul", "div"):
        return _of_product(sizes, node, name)
    if name not in SAME or sizes.growing(node):
        raise _unknown(node, "what is made of all samples goes through it")
    powers = {_power(sizes, source) for source in node.all_input_nodes}
    if len(powers) > 1:
        raise _unknown(node, "it adds means over samples to sums, or to what is of no sample")
    return powers.pop()


def _of_reduction(node: fx.Node, name: str) -> int:
    """The power of what takes in all samples."""
    if name in ("mean", "sum"):
        return int(name == "sum")
    arguments = given(node)
    if arguments.get("weight") is not None and "target" in arguments:
        raise _unknown(node, "it weighs samples by their class")
    if arguments.get("reduction") not in (1, 2):
        raise _unknown(node, "it takes in all samples")
    return int(arguments["reduction"] == 2)


def _of_product(sizes: Sizes, node: fx.Node, name: str) -> int:
    """The power of a product, or of a quotient."""
    second = node.args[1]
    sources = [each for each in node.all_input_nodes if each in sizes.of_samples]
    if len(sources) > 1 or (name == "div" and second in sizes.of_samples):
        raise _unknown(node, "it multiplies or divides by what depends on the samples")
    power = _power(sizes, next(iter(sources)))
    if isinstance(second, (int, float)):
        ratio = sizes.other(node).args[1] / second if second else 1.0  # type: ignore[operator]
        step = 1 if name == "mul" else -1
        if ratio == sizes.ratio:
            return power + step
        if ratio * sizes.ratio == 1:
            return power - step
        if ratio != 1:
            raise _unknown(node, f"at the batch's size its number is {ratio:g} times as large")
    return power


def _unknown(node: fx.Node, why: str) -> SituateError:
    return SituateError(
        f"slices: the loss must be a mean or a sum over samples, and aten.{name_of(node)} stands "
        f"in the way: {why}: {SAY}"
    )
