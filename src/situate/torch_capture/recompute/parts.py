"""The ops that run again, by module and slice, and the ops that they wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from situate.torch_capture.flow import Storage
from situate.torch_capture.recompute.saved import Saved, enclosing, is_backward, slice_of

if TYPE_CHECKING:
    from torch import fx


@dataclass(frozen=True)
class Part:
    """The ops of a module in one slice that run again.

    Attributes:
        ops: in the order of the forward pass.
        values: outputs of these ops whose recomputed copies they and the backward pass read.
        after: the op that computes the gradient of the module's output; the ops wait for it.
        before: the first node of the backward pass that needs the values.
    """

    ops: tuple[fx.Node, ...]
    values: frozenset[Storage]
    after: fx.Node
    before: fx.Node


def parts(saved: Saved, modules: Sequence[str]) -> list[Part]:
    """The parts of all modules, for each slice that has something to run again."""
    inner_values: dict[tuple[str, int | None], set[Storage]] = {}
    for value, inner in saved.within.items():
        for module in {*enclosing(inner)}.intersection(modules):
            inner_values.setdefault((module, slice_of(value[0])), set()).add(value)
    gradients = _gradients(saved)
    candidates = (_part(saved, values, gradients) for values in inner_values.values())
    return [part for part in candidates if part is not None]


def _part(saved: Saved, inner_values: set[Storage], gradients: frozenset[fx.Node]) -> Part | None:
    """The part of a module; `inner_values` are its values that no op of the forward pass outside
    reads."""
    ops = _makers(saved, inner_values)
    if not ops:
        return None
    values = frozenset(value for value in inner_values if value[0] in ops)
    before = next(_dependent(saved, values))
    # If the loss is inside the module, no gradient enters it from elsewhere.
    after = _entering(saved, values, gradients) or _last(saved, before, slice_of(ops[0]))
    return Part(ops, values, after, before)


def _makers(saved: Saved, inner_values: set[Storage]) -> tuple[fx.Node, ...]:
    """The ops that recompute the needed values of a module from its inputs and its outputs, which
    exist anyway."""
    makers: set[fx.Node] = set()
    pending = [value[0] for value in inner_values if saved.is_kept(value)]
    while pending:
        node = pending.pop()
        if node not in makers:
            makers.add(node)
            pending += [value[0] for value in saved.flow.reads[node] if value in inner_values]
    return tuple(sorted(makers, key=saved.number.__getitem__))


def _dependent(saved: Saved, values: frozenset[Storage]) -> Iterator[fx.Node]:
    """The nodes of the backward pass that need values, in order."""
    # A heap of places in the graph visits the nodes in order without a look at unrelated ones.
    nodes = list(saved.number)
    nodes_of_values = {node for value in values for node in saved.nodes_of[value]}
    pending = sorted(
        {saved.number[n] for node in nodes_of_values for n in node.users if is_backward(n)}
    )
    queued = {*pending}
    while pending:
        node = nodes[heappop(pending)]
        yield node
        for number in {saved.number[user] for user in node.users if is_backward(user)} - queued:
            queued.add(number)
            heappush(pending, number)


def _gradients(saved: Saved) -> frozenset[fx.Node]:
    """The ops of the backward pass that depend on the forward pass and on the gradient of the loss.
    They compute gradients, and only after the forward pass."""
    forward = set(saved.forward)
    loss: set[fx.Node] = set()
    late: set[fx.Node] = set()
    for node in saved.number:
        sources = node.all_input_nodes
        if type(node.meta.get("desc")).__name__ == "TangentAOTInput":
            loss.add(node)
        if is_backward(node) and any(source in loss for source in sources):
            loss.add(node)
            # A factor such as 1 / n of a mean depends on the loss's gradient alone and may run at
            # any time.
            if any(source in late or saved.storage[source][0] in forward for source in sources):
                late.add(node)
    return frozenset(late)


def _entering(
    saved: Saved, values: frozenset[Storage], gradients: frozenset[fx.Node]
) -> fx.Node | None:
    """The op that computes the first gradient from elsewhere for a node that needs values."""
    first = None
    for node in _dependent(saved, values):
        first = saved.number[node] if first is None else first
        # Views are not among the ops; what reads them is.
        for source in node.all_input_nodes if node in saved.flow.reads else ():
            maker = saved.storage[source][0]
            if source in gradients and saved.number[maker] < first:
                return maker
    return None


def _last(saved: Saved, before: fx.Node, number: int | None) -> fx.Node:
    """The last op of a slice's forward pass."""
    place = saved.number
    ops = (n for n in saved.forward if slice_of(n) == number and place[n] < place[before])
    return max(ops, key=place.__getitem__)
