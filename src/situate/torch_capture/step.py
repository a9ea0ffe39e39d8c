"""A captured step on its way to a graph: what its ops will be made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from situate.data.graph import Op
from situate.torch_capture import cost
from situate.torch_capture.buffers import Folded
from situate.torch_capture.flow import Flow, Storage
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx

BEFORE, AT, SUM, UPDATE = range(4)
"""Order of the ops that belong to one node of the trace."""


@dataclass
class Draft:
    """An op to be, with what it reads and writes: what the node computes, holds or, where its rank
    in order of execution, `place`, says so, the sum or the update of what the node holds."""

    op: Op
    node: fx.Node
    place: tuple[int, int]
    reads: tuple[Storage, ...] = ()
    writes: dict[Storage, int] = field(default_factory=dict)
    overwrites: Storage | None = None
    """Whoever else reads this must have ended before."""


@dataclass(frozen=True)
class Step:
    """A trace, what flows in it and how its parameters are updated.

    Attributes:
        number: the nodes in order of execution.
        optimizer: one of `OPTIMIZERS`.
    """

    trace: Trace
    folded: Folded
    number: dict[fx.Node, int]
    optimizer: str

    @property
    def flow(self) -> Flow:
        """The data flow of the step."""
        return self.folded.flow

    def nbytes(self, storage: Storage) -> int:
        node, index = storage
        return cost.nbytes(cost.outputs(node.meta["val"])[index])
