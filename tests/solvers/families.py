"""Small problems of every shape, for tests of solvers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from msgspec import structs

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem

OBJECTIVES = ("time", "memory", "throughput")
RULES = ("situate", "regal", "doppler", "dnn-partitioning")


def devices(*seconds: float, memory: int | None = None, **changes: Any) -> Cluster:
    """Devices d0, d1, ... of these kinds of op time, one byte per second between any two."""
    kinds = [f"x{value:g}" for value in seconds]
    return Cluster(
        "small",
        tuple(Device(f"d{i}", kind=kind, memory=memory) for i, kind in enumerate(kinds)),
        (Link("*", "*", changes.pop("bandwidth", 1.0), changes.pop("latency", 0.0)),),
        **changes,
    )


def graph(
    n: int, edges: list[tuple[int, int]], size: int = 1, seconds: Any = 1.0, **op: Any
) -> Graph:
    """n ops, one tensor per op with consumers; `x2` devices take twice the seconds."""
    each = seconds if isinstance(seconds, list) else [seconds] * n
    consumers: dict[int, list[int]] = {}
    for before, after in edges:
        consumers.setdefault(before, []).append(after)
    return Graph(
        "small",
        tuple(
            Op(f"op{j}", seconds={"x1": s, "x2": 2 * s, "cpu": s}, **op) for j, s in enumerate(each)
        ),
        tuple(Tensor(f"t{j}", j, size, tuple(users)) for j, users in consumers.items()),
    )


def chain(n: int, **changes: Any) -> Graph:
    return graph(n, [(j, j + 1) for j in range(n - 1)], **changes)


def fork(n: int, **changes: Any) -> Graph:
    """One source, n - 2 ops at once, one sink."""
    middle = range(1, n - 1)
    return graph(n, [(0, j) for j in middle] + [(j, n - 1) for j in middle], **changes)


def apart(n: int, **changes: Any) -> Graph:
    """Ops without edges."""
    return graph(n, [], **changes)


def layered(layers: int, width: int, seed: int, **changes: Any) -> Graph:
    """Every op reads one to three of the layer before."""
    rng = np.random.default_rng(seed)
    edges = []
    for j in range(width, layers * width):
        first = (j // width - 1) * width
        count = int(rng.integers(1, min(3, width) + 1))
        edges += [(first + int(i), j) for i in rng.choice(width, count, replace=False)]
    seconds = rng.exponential(2.0, layers * width).tolist()
    return graph(layers * width, edges, seconds=seconds, **changes)


def pinned_and_grouped() -> Graph:
    """A chain that leaves its ops no choice on devices d0, d1 and d2 of 1, 2 and 1 seconds."""
    ops = (
        Op("a", seconds={"*": 1.0}, group="g"),
        Op("b", seconds={"*": 1.0}, device="d2"),
        Op("c", seconds={"*": 1.0}, group="g", device="x2"),
        Op("d", seconds={"d0": 1.0}),
    )
    return Graph("g", ops, tuple(Tensor(f"t{j}", j, 1, (j + 1,)) for j in range(3)))


def ends_pinned(to: str, small: Graph) -> Graph:
    """The same graph, its first and last op on one device and no other."""
    ends = (small.ops[0], small.ops[-1])
    ops = tuple(structs.replace(op, device=to) if op in ends else op for op in small.ops)
    return replace(small, ops=ops)


@cache
def families() -> dict[str, tuple[Graph, Cluster]]:
    """Graphs with a cluster each."""
    shared = devices(1, 1, 2, latency=0.5)
    bus = Cluster("bus", shared.devices, (Link("*", "*", 2.0, channel="bus"),))
    return {
        "chain": (chain(8), devices(1, 2)),
        "fork": (fork(12), devices(1, 1, 1)),
        "apart": (apart(9), shared),
        "layered": (layered(5, 4, 1), shared),
        "bus": (layered(4, 5, 2, size=3), bus),
        "tight": (layered(4, 4, 3, persistent=4, workspace=1), devices(1, 1, 2, memory=30)),
        "blocking": (layered(4, 4, 4), devices(1, 2, transfers="blocking", synchronisation=0.25)),
        "one op": (chain(1), devices(1, 1)),
        "one device": (fork(6), devices(1)),
        "no seconds": (fork(6, seconds=0.0), devices(1, 2)),
        "no seconds, tight": (apart(6, seconds=0.0, persistent=4), devices(1, 1, memory=13)),
        "wide": (fork(300, seconds=0.1), devices(1, 1, 2)),
        "pinned among equals": (
            ends_pinned("d0", chain(4, size=4, seconds=[2.0, 1.3, 1.6, 1.0])),
            devices(1, 1, 1, bandwidth=1e9),
        ),
        "17 devices": (layered(3, 8, 5), devices(*[1] * 9, *[2] * 8)),
    }


@cache
def problem(family: str, objective: str = "time", rules: str = "situate") -> Problem:
    small, cluster = families()[family]
    return Problem(small, cluster, objective, rules)  # type: ignore[arg-type]
