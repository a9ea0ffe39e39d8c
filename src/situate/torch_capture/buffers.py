"""Small state of a module that needs no op of its own: batch-norm statistics and counters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from situate.torch_capture import names
from situate.torch_capture.cost import nbytes
from situate.torch_capture.flow import Flow, Storage

if TYPE_CHECKING:
    from torch import fx


Nodes = tuple["fx.Node", ...]


@dataclass(frozen=True)
class Folded:
    """A step without the buffers that only one op touches, and without ops that only count.

    Attributes:
        buffers: by op, the buffers that it holds instead.
        counters: by op, the counting ops that are part of it, in order.
    """

    flow: Flow
    buffers: dict[fx.Node, Nodes]
    counters: dict[fx.Node, Nodes]

    def buffer_bytes(self, op: fx.Node) -> int:
        """Bytes of all buffers that the op holds."""
        return sum(nbytes(buffer.meta["val"]) for buffer in self.buffers.get(op, ()))


def fold(step: Flow) -> Folded:
    """Assign small state to the op that uses it."""
    hosts = _hosts(step)
    held_buffers: dict[fx.Node, Nodes] = {}
    counters: dict[fx.Node, Nodes] = {}
    for counter, host in hosts.items():
        counters[host] = (*counters.get(host, ()), counter)
        buffers = (node for node, _ in step.reads[counter] if is_buffer(node))
        held_buffers[host] = (*held_buffers.get(host, ()), *buffers)
    step = _without(step, hosts)
    single = _single_users(step)
    for buffer, op in single.items():
        held_buffers[op] = (*held_buffers.get(op, ()), buffer)
    reads = {
        op: tuple(storage for storage in storages if storage[0] not in single)
        for op, storages in step.reads.items()
    }
    folded_names = {names.state_name(node) for node in single}
    mutations = {name: new for name, new in step.mutations.items() if name not in folded_names}
    return Folded(replace(step, reads=reads, mutations=mutations), held_buffers, counters)


def is_buffer(node: fx.Node) -> bool:
    """True for a node that is state without a gradient, or a constant."""
    # Descriptors are told apart by class name, here and elsewhere: their module is private to
    # AOTAutograd.
    return node.op == "get_attr" or type(node.meta.get("desc")).__name__ == "BufferAOTInput"


def _single_users(step: Flow) -> dict[fx.Node, fx.Node]:
    """Buffers that exactly one op reads and, if any op does, overwrites; with that op."""
    users = {}
    for (node, _), ops in step.readers.items():
        # A buffer that is only read passes the test below as if its reader wrote it.
        new = step.mutations.get(names.state_name(node), (ops[0], 0))
        if is_buffer(node) and len(ops) == 1 and new[0] is ops[0]:
            users[node] = ops[0]
    return users


def _hosts(step: Flow) -> dict[fx.Node, fx.Node]:
    """By counter, the first other op of its module, which takes the counter over.

    A counter computes a few bytes from buffers and only overwrites buffers, such as batch norm's
    count of batches. The counters of all slices are included; each continues the count of the slice
    before.
    """
    counters = _counters(step)
    # A counter is a kernel of a few bytes. As an op of its own it would only add launches and
    # edges.
    hosts: dict[str | None, fx.Node] = {}
    for op in step.ops:
        if op not in counters:
            hosts.setdefault(names.module(op), op)
    return {op: hosts[names.module(op)] for op in counters if names.module(op) in hosts}


def _without(step: Flow, folded: Collection[fx.Node]) -> Flow:
    ops = tuple(op for op in step.ops if op not in folded)
    mutations = {name: new for name, new in step.mutations.items() if new[0] not in folded}
    return replace(step, ops=ops, mutations=mutations, reads={op: step.reads[op] for op in ops})


def _counters(step: Flow) -> dict[fx.Node, None]:
    """The ops that count, in order."""
    chains: dict[fx.Node, tuple[fx.Node, ...]] = {}
    for op in step.ops:
        if all(len(step.readers[storage]) == 1 for storage in step.reads[op]):
            before = [source for source, _ in step.reads[op] if not is_buffer(source)]
            # A count passes from slice to slice. Within a slice, an op that reads another's result
            # computes more than a count.
            if all(source in chains and _slice(source) != _slice(op) for source in before):
                chains[op] = (*(counter for source in before for counter in chains[source]), op)
    ends = [op for op in chains if _only_updates_buffer(op, step)]
    return dict.fromkeys(op for end in ends for op in chains[end])


def _slice(op: fx.Node) -> object:
    return op.meta.get(names.SLICE)


def _only_updates_buffer(op: fx.Node, step: Flow) -> bool:
    """True if an op's result becomes the new value of a buffer and is used nowhere else."""
    new: Storage = (op, 0)
    return new in step.mutations.values() and new not in step.readers and new not in step.results
