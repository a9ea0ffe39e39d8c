"""A step at two sizes of its batch, and the dimensions that grow with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from situate.torch_capture.slices.dependence.operator_call import growing, shapes
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
        ours, theirs = (next(shapes(each), ()) for each in (node, self._other[node]))
        return growing(ours, theirs)


def _forward(trace: Trace) -> list[fx.Node]:
    tags = ((node, node.meta.get("partitioner_tag")) for node in trace.graph.nodes)
    return [node for node, tag in tags if node.op != "output" and tag != "is_backward"]
