"""Generated problems of any size, from a seed."""

from __future__ import annotations

import random

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor

TWO_DEVICES = Cluster(
    "two equal devices, overlapped transfers",
    tuple(
        Device(name, memory=2**44, flops={"float32": 10e12}, bandwidth=900e9, launch=5e-6)
        for name in ("a", "b")
    ),
    (Link("*", "*", bandwidth=10e9, latency=10e-6),),
)


def layered(ops: int, seed: int, width: int = 8) -> Graph:
    """A graph of `ops` ops whose edges reach back about `width` ops.

    Every op but the first has one or two inputs. One op in eight is a parameter, which the next op
    reads and shares a group with, as in captured networks.
    """
    draw = random.Random(seed)
    consumers: list[list[int]] = [[] for _ in range(ops)]
    for op in range(1, ops):
        if _is_parameter(op):
            consumers[op].append(min(op + 1, ops - 1))
            continue
        inputs = {max(0, op - 1 - int(draw.expovariate(1 / width))) for _ in range(2)}
        for producer in sorted(inputs - {p for p in inputs if _is_parameter(p)}) or [0]:
            consumers[producer].append(op)
    return Graph(
        f"layered-{ops}",
        tuple(_op(op, draw) for op in range(ops)),
        tuple(_tensor(op, readers, ops, draw) for op, readers in enumerate(consumers)),
    )


def _is_parameter(op: int) -> bool:
    return op % 8 == 3


def _op(op: int, draw: random.Random) -> Op:
    name = f"block{op // 64}/layer{op // 8 % 8}/op{op}"
    module = f"block{op // 64}.layer{op // 8 % 8}"
    group = f"parameter{op // 8}" if op % 8 in (3, 4) else None
    if _is_parameter(op):
        held = draw.randrange(2**18, 2**22)
        return Op(name, "parameter", persistent=held, group=group, module=module)
    flops, traffic = draw.randrange(10**8, 10**10), draw.randrange(10**6, 10**8)
    return Op(name, "aten.mm", flops=flops, traffic=traffic, group=group, module=module)


def _tensor(op: int, readers: list[int], ops: int, draw: random.Random) -> Tensor:
    readers = sorted(set(readers) - {op})
    size = draw.randrange(2**10, 2**22)
    return Tensor(f"tensor{op}", op, size, tuple(readers), resident=_is_parameter(op))


def branching(blocks: int, branches: int, seed: int) -> Graph:
    """Blocks of parallel chains that fork and join, 5 to 50 ms an op on a GPU, five times that on
    a CPU."""
    draw = random.Random(seed)
    names, readers = ["input"], [[]]  # type: list[str], list[list[int]]
    join = 0
    for block in range(blocks):
        ends = []
        for branch in range(branches):
            ends.append(join)
            for op in range(draw.randint(1, 4)):
                names.append(f"block{block}/branch{branch}/op{op}")
                readers.append([])
                readers[ends[-1]].append(len(names) - 1)
                ends[-1] = len(names) - 1
        names.append(f"block{block}/join")
        readers.append([])
        join = len(names) - 1
        for end in dict.fromkeys(ends):
            readers[end].append(join)
    return Graph(
        f"branching-{blocks}x{branches}",
        tuple(_timed(name, draw) for name in names),
        tuple(
            Tensor(f"tensor{op}", op, draw.randrange(2**20, 2**25), tuple(users))
            for op, users in enumerate(readers)
        ),
    )


def _timed(name: str, draw: random.Random) -> Op:
    seconds = draw.uniform(0.005, 0.05)
    module = ".".join(name.split("/")[:2])
    return Op(name, seconds={"gpu": seconds, "cpu": 5 * seconds}, module=module)
