"""Sums of the gradients of slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture.added_nodes import add_call, module_of
from situate.torch_capture.names import NAME, REPLICA

if TYPE_CHECKING:
    from torch import fx


class GradientSums:
    """Adds up the gradients of each parameter: those of the slices of a replica as they come, and
    these sums in the order of the replicas, each as soon as it is complete.

    Args:
        graph: of the step, which grows slice by slice.
        replica: by slice, the number of its replica.
    """

    def __init__(self, graph: fx.Graph, replica: Sequence[int]) -> None:
        self._graph, self._replica = graph, replica
        self._last = {r: s for s, r in enumerate(replica)}
        self._descriptor: dict[str, Any] = {}
        # By parameter: the sum of each replica that is not in the total yet, and the total.
        self._sums: dict[str, dict[int, fx.Node]] = {}
        self._total: dict[str, fx.Node] = {}

    def add(self, name: str, descriptor: Any, s: int, gradient: fx.Node) -> None:
        """Add the gradient of a parameter in slice `s`."""
        self._descriptor[name] = descriptor
        sums, r = self._sums.setdefault(name, {}), self._replica[s]
        if r in sums:
            gradient = self._plus(name, sums[r], gradient)
            if len(self._last) > 1:
                gradient.meta[REPLICA] = r
        sums[r] = gradient
        if s == self._last[r]:
            self._add_complete(name, s)

    def totals(self) -> list[tuple[Any, fx.Node]]:
        """By parameter, what describes it and the sum of its gradients."""
        for name in self._sums:
            self._add_complete(name, len(self._replica))
        return [(descriptor, self._total[name]) for name, descriptor in self._descriptor.items()]

    def _add_complete(self, name: str, s: int) -> None:
        """Add the sums of the first replicas to the total, as far as none of them has a slice after
        `s`."""
        sums = self._sums[name]
        for r in sorted(self._last):
            if self._last[r] > s:
                return
            if r in sums:
                before, found = self._total.get(name), sums.pop(r)
                self._total[name] = self._plus(name, before, found) if before else found

    def _plus(self, name: str, one: fx.Node, other: fx.Node) -> fx.Node:
        found = add_call(self._graph, module_of(name), "add.Tensor", one, other)
        found.meta[NAME] = f"{name}/add"
        return found
