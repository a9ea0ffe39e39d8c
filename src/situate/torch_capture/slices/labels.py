"""Labels that cross entropy leaves out of its mean, so that each slice is divided by its own
count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from situate.torch_capture.nodes import bound_arguments, operator_name, places
from situate.torch_capture.slices.dependence.analysis import Dependence
from situate.torch_capture.slices.dependence.indexing import READS
from situate.torch_capture.slices.dependence.losses import MEAN, OF_CLASSES
from situate.torch_capture.slices.dependence.operator_call import shapes
from situate.torch_capture.slices.dependence.pointwise import IDENTITIES
from situate.torch_capture.slices.dependence.reductions import kept_labels
from situate.torch_capture.slices.dependence.relation import Reason
from situate.torch_capture.slices.dependence.views import VIEWS
from situate.torch_capture.values.required import Example

if TYPE_CHECKING:
    from torch import fx

USUAL = -100
"""The label that PyTorch leaves out by default."""

NEVER_NEGATIVE = frozenset(
    {"argmax", "argmin", "arange", "randint", "topk", "eq", "gt", "lt"}
    | {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones"}
)
"""Operators whose results are never negative."""


def label_notes(step: Dependence, samples: int, examples: Mapping[int, Example]) -> Iterator[str]:
    """A warning if a mean over labels may leave some out.

    There is none for a step with one label per sample whose example inputs leave none out.

    Args:
        step: the dependence of a slice's values on the batch.
        samples: of the slice.
        examples: by input number, its values.
    """
    nodes = []
    for node in step.relations:
        labels = _counted_labels(node)
        if labels is not None and _may_leave_out(step, *labels, samples, examples):
            nodes.append(node)
    if nodes:
        text = Reason.LABELS.value.format(f"aten.{operator_name(nodes[0])}")
        yield f"slices: {text} ({places(nodes)})"


def _counted_labels(node: fx.Node) -> tuple[fx.Node, int] | None:
    """The labels that a mean counts, and the label that it leaves out; None for any other op."""
    if node.op != "call_function":
        return None
    if operator_name(node) not in OF_CLASSES:
        return kept_labels(node)
    arguments = bound_arguments(node)
    return (
        (arguments["target"], arguments["ignore_index"]) if arguments["reduction"] == MEAN else None
    )


def _may_leave_out(
    step: Dependence,
    labels: fx.Node,
    ignored: int,
    samples: int,
    examples: Mapping[int, Example],
) -> bool:
    target = _source(labels)
    if step.relation(labels).kind != "by_sample":
        return False
    number = _input(target)
    if number is None:
        return ignored != USUAL or operator_name(target) not in NEVER_NEGATIVE
    example = examples.get(number)
    if example is not None and bool((example.values == ignored).any()):
        return True
    if ignored < 0 and _is_looked_up(target):
        return False
    # Labels of tokens are padded in other batches, even if this one has no padding.
    one_each = next(shapes(target))[:1] == (samples,) and len(next(shapes(target))) == 1
    return not (one_each and ignored == USUAL and example is not None)


def _source(node: fx.Node) -> fx.Node:
    """The node of which labels are a view, a copy or a selection."""
    while node.op == "call_function" and operator_name(node) in VIEWS | IDENTITIES | READS:
        node = node.all_input_nodes[0]
    return node


def _input(node: fx.Node) -> int | None:
    descriptor: Any = node.meta.get("desc")
    return descriptor.idx if type(descriptor).__name__ == "PlainAOTInput" else None


def _is_looked_up(node: fx.Node) -> bool:
    """True for row numbers of a table, none of which is negative."""
    return any(
        user.op == "call_function" and operator_name(user) == "embedding" and user.args[1] is node
        for user in node.users
    )
