"""A step's graph, rewritten so that ops of the forward pass run a second time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from situate.torch_capture.flow import Storage
from situate.torch_capture.names import AFTER, AGAIN
from situate.torch_capture.recompute.parts import Part
from situate.torch_capture.recompute.saved import Saved, is_backward

if TYPE_CHECKING:
    from torch import fx

Source = Callable[["fx.Node"], "fx.Node"]


def with_copies(saved: Saved, parts: Sequence[Part]) -> fx.Graph:
    """The graph of a step in which parts of the forward pass occur again, each just before the
    first node of the backward pass that needs it."""
    step = _Step(saved)
    due: dict[fx.Node, list[Part]] = {}
    for part in parts:
        due.setdefault(part.before, []).append(part)
    for node in saved.number:
        for part in due.get(node, ()):
            step.repeat(part)
        step.add(node)
    return step.graph


class _Step:
    """A step's graph that is written anew.

    Attributes:
        graph: of the step.
    """

    def __init__(self, saved: Saved) -> None:
        from torch import fx

        self.graph = fx.Graph()
        self._storage = saved.storage
        # By node of the step as it was, that of the new step, and that which makes it again.
        self._first: dict[fx.Node, fx.Node] = {}
        self._again: dict[fx.Node, fx.Node] = {}
        self._repeated: set[Storage] = set()

    def add(self, node: fx.Node) -> None:
        """Copy a node. A node of the backward pass reads recomputed values, if there are any."""
        source = self._source if is_backward(node) else self._first.__getitem__
        self._first[node] = self.graph.node_copy(node, source)

    def repeat(self, part: Part) -> None:
        """Write the ops of a part once more."""
        self._repeated |= part.values
        for node in part.ops:
            # An op that reads no recomputed value could start long before its result is needed.
            begins = part.values.isdisjoint(map(self._of, node.all_input_nodes))
            copied = self._copied(node, self._source)
            _without_running_statistics(copied)
            copied.meta[AGAIN] = self._first[node]
            if begins:
                copied.meta[AFTER] = self._first[part.after]

    def _of(self, node: fx.Node) -> Storage:
        return self._storage[node]

    def _source(self, node: fx.Node) -> fx.Node:
        """The node that stands for a value where the backward pass reads it."""
        return self._again_or_view(node) if self._of(node) in self._repeated else self._first[node]

    def _again_or_view(self, node: fx.Node) -> fx.Node:
        """A recomputed node, or a view of one."""
        # Views are not among the ops of a part, so each is copied when it is first read.
        copied = self._again.get(node)
        return self._copied(node, self._again_or_view) if copied is None else copied

    def _copied(self, node: fx.Node, source: Source) -> fx.Node:
        copied = self._again[node] = self.graph.node_copy(node, source)
        copied.meta["partitioner_tag"] = "is_backward"
        return copied


def _without_running_statistics(node: fx.Node) -> None:
    """Let a batch norm that trains neither read nor return running statistics; other nodes are
    unchanged."""
    import torch

    aten = torch.ops.aten
    if node.target is aten._native_batch_norm_legit_functional.default and node.args[5]:
        # The first run has already written the running statistics; a second write would average
        # twice.
        # Arguments 3 and 4 are the running statistics, 5 is `training`; outputs 3 and 4 are new
        # statistics.
        node.target = aten._native_batch_norm_legit.no_stats
        node.args = (*node.args[:3], *node.args[5:])
        node.meta["val"] = node.meta["val"][:3]
