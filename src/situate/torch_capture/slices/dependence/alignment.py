"""The trace of a slice, op by op beside that of the whole batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from situate.torch_capture.nodes import operator_name
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx


@dataclass(frozen=True)
class Alignment:
    """Two traces that run the same ops.

    Attributes:
        part: the trace of a slice, or a copy of it with the sums that a slice of one sample lacks.
        whole: by node of `part`, the corresponding node of the whole batch.
        copies: by node of the slice's trace, the node of `part` that stands for it.
    """

    part: Trace
    whole: Mapping[fx.Node, fx.Node]
    copies: Mapping[fx.Node, fx.Node]


def aligned(part: Trace, whole: Trace) -> Alignment | None:
    """The alignment of a slice's trace and that of the whole batch; None if they run different ops.

    The gradient of a tensor that is broadcast along the samples is a sum over them. PyTorch omits
    the sum in a slice of one sample.
    """
    growing = _Copy(part)
    waiting = [node for node in part.graph.nodes if node.op != "output"][::-1]
    for other in whole.graph.nodes:
        if other.op == "output":
            continue
        node = waiting[-1] if waiting else None
        # Both traces list their ops in the order of execution, so one pass suffices.
        if node is not None and growing.add(node, other):
            waiting.pop()
        elif not growing.add_sum(other):
            return None
    if waiting or not growing.add(part.graph.output_node(), whole.graph.output_node()):
        return None
    copies = {node: standing[0] for node, standing in growing.standing.items()}
    return Alignment(replace(part, graph=growing.graph), growing.whole, copies)


class _Copy:
    """A copy of a slice's trace that grows node by node.

    Attributes:
        graph: of the copy.
        whole: by node of the copy, that of the whole batch.
        standing: by node of the slice's trace, its copy, and the sums of it over one sample.
    """

    def __init__(self, part: Trace) -> None:
        from torch import fx

        self.graph = fx.Graph()
        self.whole: dict[fx.Node, fx.Node] = {}
        self.standing: dict[fx.Node, list[fx.Node]] = {}
        # By node of the whole batch, the node of the slice's trace whose values it has.
        self._slice_nodes: dict[fx.Node, fx.Node] = {}

    def add(self, node: fx.Node, other: fx.Node) -> bool:
        """Add a node that corresponds to `other` in the whole batch; False if it does not."""
        if node.op != other.op or (node.op == "call_function" and node.target is not other.target):
            return False
        ours, theirs = _sources_of(node), _sources_of(other)
        if len(ours) != len(theirs):
            return False
        sources = [self._standing(*pair) for pair in zip(ours, theirs, strict=True)]
        if None in sources:
            return False
        # `node_copy` asks for sources in the order in which `map_arg` visits the arguments.
        following = iter(sources)
        copied = self.graph.node_copy(node, lambda _: next(following))
        self.whole[copied], self.standing[node] = other, [copied]
        self._slice_nodes[other] = node
        return True

    def add_sum(self, other: fx.Node) -> bool:
        """Add a sum over the one sample of the slice; False for any other op."""
        source = self._slice_nodes.get(_sources_of(other)[0]) if _sources_of(other) else None
        if source is None or operator_name(other) != "sum":
            return False
        value: Any = other.meta["val"]
        # Over one sample with a kept dimension, the sum has the shape of its input.
        if source.meta["val"].shape != value.shape:
            return False
        [summed] = _sources_of(other)
        standing = self._standing(source, summed)
        added = self.graph.node_copy(other, lambda _: standing)
        self.whole[added] = other
        self.standing[source].append(added)
        self._slice_nodes[other] = source
        return True

    def _standing(self, node: fx.Node, other: fx.Node) -> fx.Node | None:
        """The copy of a node, or the sum of it, that corresponds to `other`; None if there is
        none."""
        return next(
            (candidate for candidate in self.standing[node] if self.whole[candidate] is other), None
        )


def _sources_of(node: fx.Node) -> list[fx.Node]:
    """The nodes among the arguments, one for each place, in order."""
    from torch import fx

    nodes: list[fx.Node] = []
    fx.map_arg((node.args, node.kwargs), nodes.append)
    return nodes
