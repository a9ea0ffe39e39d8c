"""Sums of the gradients of slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from situate.data.slices import Sums
from situate.torch_capture.names import NAME, REPLICA
from situate.torch_capture.nodes import add_call, module_of

if TYPE_CHECKING:
    from torch import fx


class GradientSums:
    """Adds up the gradients of each parameter.

    The gradients of a replica's slices are added as they come. The replicas' sums are added in the
    order of replicas, each once it is complete.

    Args:
        graph: of the step, which grows slice by slice.
        replica: by slice, the number of its replica.
        order: of the additions, within a replica and among them.
    """

    def __init__(self, graph: fx.Graph, replica: Sequence[int], order: Sums) -> None:
        self._graph, self._replica, self._order = graph, replica, order
        # The last slice of each replica, since later entries replace earlier ones.
        self._last = {r: s for s, r in enumerate(replica)}
        self._descriptor: dict[str, Any] = {}
        # By parameter: the sum of each replica that is not in the total yet, and the total.
        self._sums: dict[str, dict[int, Sum]] = {}
        self._total: dict[str, Sum] = {}

    def add(self, name: str, descriptor: Any, s: int, gradient: fx.Node) -> None:
        """Add the gradient of a parameter in slice `s`."""
        self._descriptor[name] = descriptor
        sums, r = self._sums.setdefault(name, {}), self._replica[s]
        if r not in sums:
            sums[r] = Sum(self._plus(name, r if len(self._last) > 1 else None), self._order)
        sums[r].add(gradient)
        if s == self._last[r]:
            self._add_complete(name, s)

    def totals(self) -> list[tuple[Any, fx.Node]]:
        """By parameter, its descriptor and the sum of its gradients."""
        for name in self._sums:
            self._add_complete(name, len(self._replica))
        return [
            (descriptor, self._total[name].total()) for name, descriptor in self._descriptor.items()
        ]

    def _add_complete(self, name: str, s: int) -> None:
        """Add the sums of the first replicas to the total, up to one that has a slice after `s`."""
        sums = self._sums[name]
        total = self._total.setdefault(name, Sum(self._plus(name, None), self._order))
        # In the order of replicas, so that the result does not depend on which one ends first.
        for r in sorted(self._last):
            if self._last[r] > s:
                return
            if r in sums:
                total.add(sums.pop(r).total())

    def _plus(self, name: str, r: int | None) -> Plus:
        """An addition for a parameter, in one replica or over all."""

        def plus(one: fx.Node, other: fx.Node) -> fx.Node:
            total = add_call(self._graph, module_of(name), "add.Tensor", one, other)
            total.meta[NAME] = f"{name}/add"
            if r is not None:
                total.meta[REPLICA] = r
            return total

        return plus


Plus = Callable[["fx.Node", "fx.Node"], "fx.Node"]
"""Returns the sum of two nodes."""


class Sum:
    """A sum that grows. A chain adds any two parts at once; a tree adds parts with equally many
    summands."""

    def __init__(self, plus: Plus, order: Sums) -> None:
        self._plus, self._order = plus, order
        # Parts (number of summands, node) still to be added, in falling order of the number.
        self._parts: list[tuple[int, fx.Node]] = []

    def add(self, node: fx.Node) -> None:
        """Add one more summand."""
        self._parts.append((1, node))
        while len(self._parts) > 1 and self._is_due():
            self._join()

    def total(self) -> fx.Node:
        """The sum of all summands, of which there is at least one."""
        while len(self._parts) > 1:
            self._join()
        return self._parts[0][1]

    def _is_due(self) -> bool:
        # A tree works like a binary counter: two parts of 2^k summands become one of 2^(k + 1).
        (before, _), (last, _) = self._parts[-2:]
        return self._order == "chain" or before == last

    def _join(self) -> None:
        (before, one), (last, other) = self._parts[-2:]
        self._parts[-2:] = [(before + last, self._plus(one, other))]
