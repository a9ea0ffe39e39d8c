"""REGAL's synthetic graphs (A. Paliwal et al., ICLR 2020, A.1.4), from a seed.

Four models of random graphs, their edges turned along a random order of the nodes; an op makes no
tensor, one or two; a tensor has about 50 units, an op takes as long as all its tensors have units,
give or take a tenth. The page of the published graphs says that outputs alone count, the paper that
inputs and outputs do. The paper's filters are not applied.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from situate.bench.instances import Instance
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem

Edges = set[tuple[int, int]]
"""Pairs of nodes, the lower first."""

CountRule = Literal["inputs and outputs", "outputs"]
"""The tensors whose units an op takes time for."""


def _erdos_renyi(nodes: int, draw: random.Random) -> Edges:
    """Each pair with probability 0.05."""
    return {(u, v) for v in range(nodes) for u in range(v) if draw.random() < 0.05}


def _barabasi_albert(nodes: int, draw: random.Random) -> Edges:
    """Each node to two before it, by how many edges these have."""
    edges: Edges = {(0, 2), (1, 2)}
    # A node stands here once for each of its edges, so a draw prefers nodes with many.
    ends = [0, 1, 2, 2]
    for v in range(3, nodes):
        targets: set[int] = set()
        while len(targets) < 2:
            targets.add(draw.choice(ends))
        edges |= {(u, v) for u in targets}
        ends += [*sorted(targets), v, v]
    return edges


def _watts_strogatz(nodes: int, draw: random.Random) -> Edges:
    """A ring, each node to its four neighbours; three edges in ten have another end."""
    edges: Edges = set()
    for u in range(nodes):
        for step in (1, 2):
            v = (u + step) % nodes
            while draw.random() < 0.3 or u == v or _pair(u, v) in edges:
                v = draw.randrange(nodes)
            edges.add(_pair(u, v))
    return edges


def _stochastic_block(nodes: int, draw: random.Random) -> Edges:
    """Four blocks: pairs within one with probability 0.3, others with 0.01."""
    chance = {True: 0.3, False: 0.01}
    return {
        (u, v)
        for v in range(nodes)
        for u in range(v)
        # Node u is in block 4 u // nodes.
        if draw.random() < chance[4 * u // nodes == 4 * v // nodes]
    }


MODELS: dict[str, Callable[[int, random.Random], Edges]] = {
    "er": _erdos_renyi,
    "ba": _barabasi_albert,
    "ws": _watts_strogatz,
    "sbm": _stochastic_block,
}


GRAPHS = 5
"""Graphs of each model, in a family."""

NODES = (50, 200)
"""As few and as many ops as the paper's graphs have."""


def zero_cost() -> list[Instance]:
    """Transfers take no time, as in the paper: devices stop for one another all the same."""
    return [_instance("regal_zero_cost", *which, None) for which in _which()]


def bandwidth() -> list[Instance]:
    """Transfers take as long as their tensor has units."""
    return [_instance("regal_bandwidth", *which, 1.0) for which in _which()]


def _which() -> list[tuple[str, int, int]]:
    """Model, number of the graph, devices."""
    return [(m, i, d) for i in range(GRAPHS) for m in MODELS for d in (2, 4)]


def _instance(
    family: str, model: str, number: int, devices: int, bandwidth: float | None
) -> Instance:
    nodes = random.Random(number).randint(*NODES)

    def make() -> Problem:
        graph = synthetic(model, nodes, number, bandwidth)
        return Problem(graph, Cluster.identical(devices))

    return Instance(family, f"{model}-{nodes}-{number} on {devices}", make)


def synthetic(
    model: str,
    nodes: int,
    seed: int,
    bandwidth: float | None = None,
    count_rule: CountRule = "inputs and outputs",
) -> Graph:
    """A graph of so many ops, with a source and a sink beside them.

    Args:
        model: a name of `MODELS`.
        nodes: the paper's have 50 to 200.
        seed: of all draws.
        bandwidth: units that a transfer moves in a unit of time; None for transfers that take none.
        count_rule: see `CountRule`.
    """
    draw = random.Random(f"{model} {nodes} {seed}")
    # Op 0 is the source and op `nodes + 1` the sink.
    place = list(range(1, nodes + 1))
    draw.shuffle(place)
    edges = sorted(_pair(place[u], place[v]) for u, v in MODELS[model](nodes, draw))
    output_sizes = [
        [max(1, round(draw.gauss(50, 10))) for _ in range(_outputs(draw))] for _ in place
    ]
    sizes = [[], *output_sizes, []]  # type: list[list[int]]
    readers = [[set[int]() for _ in outputs] for outputs in sizes]
    control = set[tuple[int, int]]()
    for producer, consumer in edges:
        # One edge in five is a control edge.
        if not sizes[producer] or draw.random() < 0.2:
            control.add((producer, consumer))
        else:
            draw.choice(readers[producer]).add(consumer)
    # Ops without inputs follow the source, and the sink follows ops without readers.
    begin, end = {u for u, _ in edges}, {v for _, v in edges}
    control |= {(0, op) for op in place if op not in end}
    control |= {(op, nodes + 1) for op in place if op not in begin}
    return Graph(
        f"{model}-{nodes}-{seed}",
        _ops(sizes, readers if count_rule == "inputs and outputs" else [], draw),
        tuple(
            Tensor(
                f"t{op}.{i}",
                op,
                size,
                tuple(sorted(readers[op][i])),
                seconds=size / bandwidth if bandwidth else 0.0,
            )
            for op, outputs in enumerate(sizes)
            for i, size in enumerate(outputs)
        ),
        tuple(sorted(control)),
        unit="",
        rules="regal",
    )


def _pair(u: int, v: int) -> tuple[int, int]:
    return min(u, v), max(u, v)


def _outputs(draw: random.Random) -> int:
    return draw.choices((0, 1, 2), (0.1, 0.8, 0.1))[0]


def _ops(
    sizes: list[list[int]], readers: list[list[set[int]]], draw: random.Random
) -> tuple[Op, ...]:
    """Ops that take as long as the tensors they make, and those they are readers of, have units."""
    units = [sum(outputs) for outputs in sizes]
    for op, of_op in enumerate(readers):
        for i, users in enumerate(of_op):
            for user in users:
                units[user] += sizes[op][i]
    noise = [1 + draw.gauss(0, 0.1) for _ in units]
    return tuple(
        Op(f"op{j}", seconds={"*": float(max(round(u * factor), 0))})
        for j, (u, factor) in enumerate(zip(units, noise, strict=True))
    )
