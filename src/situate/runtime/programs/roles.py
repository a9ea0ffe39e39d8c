"""Roles of the ops of a program: computation, state, input or update; and who owns a storage."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from situate.runtime.programs.program import Program
from situate.torch_capture.flow import Storage, storages
from situate.torch_capture.names import AGAIN

if TYPE_CHECKING:
    from torch import fx

Role = Literal["compute", "state", "input", "tangent", "sum", "update", "copy"]

_OF_KIND: dict[str, Role] = {
    "parameter": "state",
    "buffer": "state",
    "input": "input",
    "aten.full": "tangent",
    "aten.add": "sum",
    "update.copy": "copy",
}


class Roles:
    """The roles of the ops of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def of(self, op: int) -> Role:
        """The role of op number `op`; `tangent` is the gradient of the loss by itself, 1."""
        if self.program.nodes[op].op == "call_function":
            return "compute"
        return _OF_KIND.get(self.program.graph.ops[op].kind, "update")

    @cached_property
    def storage(self) -> dict[fx.Node, Storage]:
        """The storage that a node's value is in."""
        return storages(self.program.step.trace)

    @cached_property
    def owner(self) -> dict[Storage, int]:
        """The op that makes a storage, or holds it."""
        folded = self.program.step.folded
        found: dict[Storage, int] = {}
        for op, node in enumerate(self.program.nodes):
            role = self.of(op)
            if role == "compute":
                values = node.meta["val"]
                count = len(values) if isinstance(values, (list, tuple)) else 1
                found |= {(node, k): op for k in range(count)}
                inside = (*folded.buffers.get(node, ()), *folded.counters.get(node, ()))
                found |= {(held, 0): op for held in inside}
            elif role in ("state", "input", "tangent"):
                found[node, 0] = op
            elif role == "sum":
                # Output 0 of a parameter is its value: the sum of its gradients is numbered 1.
                found[node, 1] = op
        return found

    @cached_property
    def wanted(self) -> frozenset[Storage]:
        """The storages that anything reads."""
        program, folded = self.program, self.program.step.folded
        counters = [counter for ops in folded.counters.values() for counter in ops]
        returned = [*program.results, *program.mutations.values()]
        gradients = [node for nodes in program.gradients.values() for node in nodes]
        read = [source for node in counters for source in node.all_input_nodes]
        nodes = [*returned, *gradients, *read]
        return frozenset(folded.flow.used | {self.storage[node] for node in nodes})

    @cached_property
    def random(self) -> dict[fx.Node, int]:
        """The rank of each node that draws random numbers among the draws of the unplaced step; one
        that runs again draws what it drew first."""
        import torch

        seeded = torch.Tag.nondeterministic_seeded
        nodes = self.program.step.number
        drawing = [node for node in nodes if seeded in getattr(node.target, "tags", ())]
        first = (node for node in drawing if AGAIN not in node.meta)
        rank = {node: k for k, node in enumerate(first)}
        return {node: rank[node.meta.get(AGAIN, node)] for node in drawing}
