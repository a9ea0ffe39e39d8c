"""Small state of a module that needs no op of its own: batch-norm statistics and counters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from situate.readers.torch_cost import nbytes
from situate.readers.torch_flow import Flow, Storage
from situate.readers.torch_names import held, module

if TYPE_CHECKING:
    from torch import fx


def fold(step: Flow) -> tuple[Flow, dict[fx.Node, int]]:
    """The step without the buffers that only one op touches and without ops that only count, and
    by op the bytes of the buffers that it holds instead."""
    step, counted = _fold_counters(step)
    single = _single_users(step)
    reads = {
        op: tuple(storage for storage in storages if storage[0] not in single)
        for op, storages in step.reads.items()
    }
    gone = {held(node) for node in single}
    mutations = {name: new for name, new in step.mutations.items() if name not in gone}
    bytes_held = dict(counted)
    for node, op in single.items():
        bytes_held[op] = bytes_held.get(op, 0) + nbytes(node.meta["val"])
    return replace(step, reads=reads, mutations=mutations), bytes_held


def is_buffer(node: fx.Node) -> bool:
    """Whether a node is state that takes no gradient, or a constant."""
    return node.op == "get_attr" or type(node.meta.get("desc")).__name__ == "BufferAOTInput"


def _single_users(step: Flow) -> dict[fx.Node, fx.Node]:
    """Buffers that one op alone reads, and overwrites if anybody does, with that op."""
    found = {}
    for (node, _), ops in step.readers.items():
        new = step.mutations.get(held(node), (ops[0], 0))
        if is_buffer(node) and len(ops) == 1 and new[0] is ops[0]:
            found[node] = ops[0]
    return found


def _fold_counters(step: Flow) -> tuple[Flow, dict[fx.Node, int]]:
    """An op that only overwrites buffers with what it makes of buffers goes to the first other op
    of its module: a kernel of a few bytes, such as batch-norm's count of batches."""
    counters = {op for op in step.ops if _only_counts(op, step)}
    hosts: dict[str | None, fx.Node] = {}
    for op in step.ops:
        if op not in counters:
            hosts.setdefault(module(op), op)
    folded = {op: hosts[module(op)] for op in counters if module(op) in hosts}
    bytes_held: dict[fx.Node, int] = {}
    for op, host in folded.items():
        size = sum(nbytes(buffer.meta["val"]) for buffer, _ in step.reads[op])
        bytes_held[host] = bytes_held.get(host, 0) + size
    ops = tuple(op for op in step.ops if op not in folded)
    mutations = {name: new for name, new in step.mutations.items() if new[0] not in folded}
    reads = {op: step.reads[op] for op in ops}
    return replace(step, ops=ops, reads=reads, mutations=mutations), bytes_held


def _only_counts(op: fx.Node, step: Flow) -> bool:
    new: Storage = (op, 0)
    sources = [node for node, _ in step.reads[op]]
    return (
        all(is_buffer(node) and len(step.readers[node, 0]) == 1 for node in sources)
        and new in step.mutations.values()
        and new not in step.readers
        and new not in step.results
    )
