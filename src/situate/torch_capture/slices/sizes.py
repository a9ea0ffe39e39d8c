"""A step at two sizes of its batch, and what grows with it."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from situate.torch_capture import cost
from situate.torch_capture.flow import described_outputs
from situate.torch_capture.names import path
from situate.torch_capture.slices.cut import Cut
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx


class Sizes:
    """The forward pass of a step at the size of a slice, beside that at the size of the batch.

    Args:
        part: the trace of a slice.
        whole: the trace of the whole batch.
        cut: of the inputs.

    Attributes:
        forward: the nodes of the slice's forward pass, in order.
        samples: of the slice.
        ratio: samples of the batch by those of the slice.
    """

    def __init__(self, part: Trace, whole: Trace, cut: Cut) -> None:
        self.forward = _forward(part)
        self.samples = cut.samples[0]
        self.ratio = sum(cut.samples) / cut.samples[0]
        self._axes = cut.axes
        self._outputs = list(described_outputs(part.graph))
        others = _forward(whole)
        alike = [node.target for node in self.forward] == [node.target for node in others]
        self._other = dict(zip(self.forward, others, strict=True)) if alike else {}

    @property
    def comparable(self) -> bool:
        """True if both sizes run the same ops."""
        return bool(self._other)

    def other(self, node: fx.Node) -> fx.Node:
        """The node of the whole batch that does what this one does."""
        return self._other[node]

    @cached_property
    def of_samples(self) -> frozenset[fx.Node]:
        """The nodes whose value depends on the samples."""
        found: set[fx.Node] = set()
        for node in self.forward:
            if self._is_cut(node) or any(source in found for source in node.all_input_nodes):
                found.add(node)
        return frozenset(found)

    @property
    def written(self) -> Iterator[str]:
        """Buffers whose new value depends on the samples, other than statistics that a batch norm
        keeps itself."""
        for node, descriptor in self._outputs:
            if type(descriptor).__name__ == "InputMutationAOTOutput" and node in self.of_samples:
                name = path(descriptor.mutated_input)
                if name and node.target is not operator.getitem:
                    yield name

    def _is_cut(self, node: fx.Node) -> bool:
        descriptor: Any = node.meta.get("desc")
        is_input = type(descriptor).__name__ == "PlainAOTInput"
        return is_input and self._axes[descriptor.idx] is not None

    def growing(self, node: fx.Node) -> tuple[int, ...]:
        """The dimensions of a node's first output that grow with the batch."""
        ours, theirs = (next(_shapes(each), ()) for each in (node, self._other[node]))
        if len(ours) != len(theirs):
            return ()
        return tuple(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)

    def reads_growing(self, node: fx.Node) -> bool:
        """True if an input of the node grows with the batch."""
        return any(self.growing(source) for source in node.all_input_nodes)


def _shapes(node: fx.Node) -> Iterator[tuple[int, ...]]:
    return (tuple(getattr(v, "shape", ())) for v in cost.outputs(node.meta.get("val")))


def _forward(trace: Trace) -> list[fx.Node]:
    tags = ((node, node.meta.get("partitioner_tag")) for node in trace.graph.nodes)
    return [node for node, tag in tags if node.op != "output" and tag != "is_backward"]
