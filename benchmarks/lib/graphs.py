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
