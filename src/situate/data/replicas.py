"""Replicas of the parameters in the graph of a step of slices."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from situate.data.graph import Graph, Op, Tensor


def replicated(graph: Graph) -> dict[str, int]:
    """By name of a parameter that has replicas, the bytes that each holds of it, in the order of
    the graph."""
    parameters = (
        (_parameter(op), op) for op in graph.ops if op.kind == "parameter" and op.replica == 0
    )
    return {name: op.persistent for name, op in parameters}


def with_once(graph: Graph, names: Collection[str]) -> Graph:
    """The graph with a single copy of these parameters, as a capture with `once` would give it,
    except for the places of their updates in the program.

    Args:
        graph: of a step with replicas.
        names: among those of `replicated`.
    """
    new_index = _single_ops(graph.ops, names)
    ops: list[Op] = []
    number: dict[int, int] = {}
    for i, op in enumerate(graph.ops):
        if new_index.get(i, i) == i:
            number[i] = len(ops)
            ops.append(_alone(op) if i in new_index else op)
    # Copies that go have the number of the one that stays.
    number |= {i: number[other] for i, other in new_index.items()}
    assert graph.slices is not None
    once = dict.fromkeys((*graph.slices.once, *names))
    return dataclasses.replace(
        graph,
        ops=tuple(ops),
        tensors=tuple(_tensors(graph.tensors, number, new_index)),
        control=tuple(dict.fromkeys((number[a], number[b]) for a, b in graph.control)),
        slices=msgspec.structs.replace(graph.slices, once=tuple(once)),
    )


def _tensors(
    tensors: Sequence[Tensor], number: Mapping[int, int], new_index: Collection[int]
) -> Iterator[Tensor]:
    """The tensors of the new graph; the readers of all copies of a parameter read the first."""
    of_copies: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        consumers = dict.fromkeys(number[reader] for reader in tensor.consumers)
        moved = msgspec.structs.replace(
            tensor, producer=number[tensor.producer], consumers=tuple(consumers)
        )
        if tensor.producer in new_index:
            of_copies.setdefault(_without_replica(tensor.name), []).append(moved)
        else:
            yield moved
    for name, (first, *others) in of_copies.items():
        readers = sorted({*first.consumers, *(r for other in others for r in other.consumers)})
        yield msgspec.structs.replace(first, name=name, consumers=tuple(readers))


def _single_ops(ops: Sequence[Op], names: Collection[str]) -> dict[int, int]:
    """By op that holds or updates a copy of such a parameter, the copy that remains.

    It is the first of the copies, and the last of the updates, which follows all readers.
    """
    by_name: dict[str, list[int]] = {}
    for i, op in enumerate(ops):
        is_copy = op.replica is not None and (op.kind == "parameter" or op.phase == "update")
        if is_copy and _parameter(op) in names:
            by_name.setdefault(_without_replica(op.name), []).append(i)
    return {
        i: copies[-1 if ops[i].phase == "update" else 0]
        for copies in by_name.values()
        for i in copies
    }


def _alone(op: Op) -> Op:
    name = _without_replica(op.name)
    return msgspec.structs.replace(op, name=name, replica=None, group=op.group and _parameter(op))


def _parameter(op: Op) -> str:
    """The parameter that an op of a replica holds or updates."""
    name = _without_replica(op.name)
    return name.rpartition("/")[0] if op.phase == "update" else name


def _without_replica(name: str) -> str:
    return name.partition("/")[2]
