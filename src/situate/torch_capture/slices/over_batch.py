"""The batch norms of a step that can take their statistics over all slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.torch_capture import names
from situate.torch_capture.flow import described_outputs
from situate.torch_capture.names import path
from situate.torch_capture.nodes import bound_arguments, operator_name
from situate.torch_capture.slices.cut import Cut
from situate.torch_capture.slices.dependence.norms import BATCH_NORMS, CHANNEL, trains
from situate.torch_capture.slices.dependence.operator_call import growing, shapes
from situate.torch_capture.slices.norms import Backward, Forward
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx


class Sizes:
    """The forward pass of a step at the size of a slice, beside that at the size of the batch.

    Args:
        part: the trace of a slice.
        whole: the trace of the whole batch.
    """

    def __init__(self, part: Trace, whole: Trace) -> None:
        ours, theirs = _forward(part), _forward(whole)
        alike = [node.target for node in ours] == [node.target for node in theirs]
        self._other = dict(zip(ours, theirs, strict=True)) if alike else {}

    @property
    def comparable(self) -> bool:
        """True if both sizes run the same ops."""
        return bool(self._other)

    def growing(self, node: fx.Node) -> tuple[int, ...]:
        """The dimensions of a node's first output that grow with the batch."""
        ours, theirs = (next(shapes(other), ()) for other in (node, self._other[node]))
        return growing(ours, theirs)


def _forward(trace: Trace) -> list[fx.Node]:
    # Tracing of a training step tags the nodes of its backward pass.
    tags = ((node, node.meta.get("partitioner_tag")) for node in trace.graph.nodes)
    return [node for node, tag in tags if node.op != "output" and tag != "is_backward"]


FUNCTIONAL = frozenset({"_native_batch_norm_legit_functional", "_native_batch_norm_legit"})
"""Operators that capture makes of PyTorch's modules and functions."""

GRADIENT = "native_batch_norm_backward"

INSTEAD = "let each slice have statistics of its own: --batch-norm slice"


@dataclass(frozen=True)
class OverBatch:
    """Batch norms that take their statistics over all slices.

    Attributes:
        nodes: these norms in the traces of slices, and the nodes of their gradients.
        buffers: names of the buffers that they write, once per step.
    """

    nodes: frozenset[fx.Node] = frozenset()
    buffers: frozenset[str] = frozenset()

    def begin(
        self, graph: fx.Graph, node: fx.Node, nodes: dict[fx.Node, fx.Node], number: int
    ) -> Forward | Backward | None:
        """A norm in a slice, before the slices exchange statistics; None for all other nodes.

        Args:
            graph: of the step.
            node: of the slice's trace.
            nodes: by node of that trace, the node that stands for it.
            number: of the slice.
        """
        if node not in self.nodes:
            return None
        kind = Backward if operator_name(node) == GRADIENT else Forward
        return kind(graph, node, nodes, number)


def over_batch(sizes: Sizes, parts: Sequence[Trace], cut: Cut) -> OverBatch:
    """The norms whose statistics are those of the batch.

    Args:
        sizes: of the first slice, beside the whole batch.
        parts: the trace of each slice.
        cut: of the inputs.

    Raises:
        SituateError: there are none; an operator cannot be split; slices depend on one another in
            another way, too.
    """
    if not sizes.comparable:
        raise SituateError(
            "slices: the step runs other ops at a slice's size than at the batch's, so that it "
            f"cannot be told which batch norms depend on the samples: {INSTEAD}"
        )
    has_statistics = [_has_statistics(sizes, node) for node in _norms(parts[0])]
    if not any(has_statistics):
        raise SituateError(
            "slices: no batch norm takes statistics of the samples: leave --batch-norm out"
        )
    norms_of_slices = [list(_norms_over_batch(part, has_statistics)) for part in parts]
    _check_alike(norms_of_slices)
    nodes = frozenset(node for norms in norms_of_slices for node in norms)
    buffers = frozenset(name for node in nodes for name in _buffers(node))
    _check_buffers(parts[0], buffers, cut)
    gradients = [list(_gradients(part, nodes)) for part in parts]
    _check_alike(gradients)
    return OverBatch(nodes.union(*gradients), buffers)


def _has_statistics(sizes: Sizes, node: fx.Node) -> bool:
    """True for a batch norm that trains and whose channels are not the samples themselves, as those
    of instance norm are."""
    return trains(operator_name(node), bound_arguments(node)) and any(
        i != CHANNEL for i in sizes.growing(node.all_input_nodes[0])
    )


def _norms(part: Trace) -> list[fx.Node]:
    return [
        n for n in part.graph.nodes if n.op == "call_function" and operator_name(n) in BATCH_NORMS
    ]


def _norms_over_batch(part: Trace, has_statistics: Sequence[bool]) -> Iterator[fx.Node]:
    for node, is_over_batch in zip(_norms(part), has_statistics, strict=False):
        # Other overloads return other statistics, which the two operators do not combine.
        if is_over_batch and operator_name(node) not in FUNCTIONAL:
            where = names.module(node) or "the model"
            raise SituateError(
                f"slices: aten.{operator_name(node)} of {where} is called as such, and only what "
                f"torch.nn.functional.batch_norm calls is split: call that, or {INSTEAD}"
            )
        if is_over_batch:
            yield node


def _gradients(part: Trace, norms: frozenset[fx.Node]) -> Iterator[fx.Node]:
    for node in part.graph.nodes:
        if node.op == "call_function" and operator_name(node) == GRADIENT:
            # The mean is one of the norm's outputs: a `getitem` node, whose first argument is the
            # norm.
            mean = bound_arguments(node)["save_mean"]
            if mean is not None and mean.args[0] in norms:
                yield node


def _check_alike(of_slices: Sequence[Sequence[fx.Node]]) -> None:
    """Refuse slices that run other norms than the first, as a step that reads values may."""
    modules = [[names.module(node) for node in nodes] for nodes in of_slices]
    if any(other != modules[0] for other in modules):
        raise SituateError(f"slices: they do not all run the same batch norms: {INSTEAD}")


def _buffers(node: fx.Node) -> Iterator[str]:
    """The running averages of a norm, and its counter of batches."""
    for name in ("running_mean", "running_var"):
        buffer = bound_arguments(node).get(name)
        if buffer is not None and (name := names.state_name(buffer)):
            yield name
            yield f"{name.rpartition('.')[0]}.num_batches_tracked".lstrip(".")


def _check_buffers(part: Trace, buffers: frozenset[str], cut: Cut) -> None:
    """Refuse state that a slice hands to the next only at its end."""
    for _, descriptor in described_outputs(part.graph):
        if type(descriptor).__name__ != "InputMutationAOTOutput":
            continue
        mutated = descriptor.mutated_input
        name = path(mutated)
        handed = name not in buffers if name else cut.axes[mutated.idx] is None
        if handed:
            what = f"buffer {name!r}" if name else f"input {mutated.idx}"
            raise SituateError(
                f"slices: {what} is written by every slice for the next, which cannot wait for "
                f"all of it where batch norms take statistics over the batch: {INSTEAD}"
            )
