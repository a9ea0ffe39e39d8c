"""What is computed again: of each block, and of each slice in it, the ops, and when they may
start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from situate.torch_capture.flow import Storage
from situate.torch_capture.recompute.saved import Saved, is_backward, is_part, slice_of

if TYPE_CHECKING:
    from torch import fx


@dataclass(frozen=True)
class Part:
    """The ops of a block in one slice that are computed again.

    Attributes:
        block: path of the module.
        ops: in the order of the forward pass.
        values: of theirs, those that they and the backward pass read as they are made again.
        after: the op that makes the gradient of what the block gave; they wait for it.
        before: the first node of the backward pass that needs them.
    """

    block: str
    ops: tuple[fx.Node, ...]
    values: frozenset[Storage]
    after: fx.Node
    before: fx.Node


def parts(saved: Saved, blocks: Sequence[str]) -> list[Part]:
    """The parts of all blocks that have something to compute again."""
    gradients = _gradients(saved)
    found = (
        _part(saved, block, number, gradients)
        for block in blocks
        for number in dict.fromkeys(map(slice_of, saved.forward))
    )
    return [part for part in found if part is not None]


def _part(
    saved: Saved, block: str, number: int | None, gradients: frozenset[fx.Node]
) -> Part | None:
    here = frozenset(
        node
        for node in saved.forward
        if slice_of(node) == number and is_part(saved.module[node], block)
    )
    stays = frozenset(v for v in saved.within if v[0] in here and saved.stays(v, block))
    ops = _makers(saved, stays)
    if not ops:
        return None
    values = frozenset(v for v in stays if v[0] in ops)
    readers = _dependent(saved, values)
    after = _entering(saved, readers, gradients) or _last(saved, number, readers[0])
    ordered = tuple(node for node in saved.forward if node in ops)
    return Part(block, ordered, values, after, readers[0])


def _makers(saved: Saved, stays: frozenset[Storage]) -> frozenset[fx.Node]:
    """The ops that make the values that are needed again, of those that stay in a block, from what
    comes into it and what it hands out, which is there in any case."""
    found: set[fx.Node] = set()
    pending = [value[0] for value in stays if saved.is_kept(value)]
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += [value[0] for value in saved.flow.reads[node] if value in stays]
    return frozenset(found)


def _dependent(saved: Saved, values: frozenset[Storage]) -> list[fx.Node]:
    """The nodes of the backward pass that need values, in order."""
    found: dict[fx.Node, None] = {}
    for node in saved.number:
        if is_backward(node) and any(
            source in found or saved.storage[source] in values for source in node.all_input_nodes
        ):
            found[node] = None
    return list(found)


def _gradients(saved: Saved) -> frozenset[fx.Node]:
    """The ops of the backward pass that depend on the forward pass and on the gradient of the
    loss: those that make gradients and can do so only when the forward pass has ended."""
    forward = set(saved.forward)
    loss: set[fx.Node] = set()
    late: set[fx.Node] = set()
    for node in saved.number:
        sources = node.all_input_nodes
        if type(node.meta.get("desc")).__name__ == "TangentAOTInput":
            loss.add(node)
        if is_backward(node) and any(source in loss for source in sources):
            loss.add(node)
            if any(source in late or saved.storage[source][0] in forward for source in sources):
                late.add(node)
    return frozenset(late)


def _entering(
    saved: Saved, readers: Sequence[fx.Node], gradients: frozenset[fx.Node]
) -> fx.Node | None:
    """The op that makes the first gradient that comes to nodes from outside of them."""
    first = saved.number[readers[0]]
    for node in readers:
        for source in node.all_input_nodes:
            maker = saved.storage[source][0]
            if source in gradients and saved.number[maker] < first:
                return maker
    return None


def _last(saved: Saved, number: int | None, before: fx.Node) -> fx.Node:
    """The last op of the forward pass of a slice."""
    place = saved.number
    ops = (n for n in saved.forward if slice_of(n) == number and place[n] < place[before])
    return max(ops, key=place.__getitem__)
