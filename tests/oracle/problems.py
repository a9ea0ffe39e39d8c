"""Seeded random problems and decisions that cover the execution model and its combinations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs
from numpy.random import Generator
from numpy.typing import NDArray

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import OBJECTIVES, Problem
from situate.data.rules import RULES, Rules
from situate.errors import SituateError

KINDS = ("gpu", "gpu", "cpu")
UNPLACEABLE = ("no device", "more than any device", "pinned to two devices")


@dataclass(frozen=True, eq=False)
class Decision:
    """Arguments of a decoder: (n,) devices, (n,) priorities, (m, d) transfer priorities or None."""

    placement: NDArray[np.int32]
    priority: NDArray[np.float32]
    transfer_priority: NDArray[np.float32] | None


def random_problem(seed: int) -> Problem:
    """A problem of 1 to 40 ops on 1 to 5 devices; the same for the same seed."""
    rng = np.random.default_rng(seed)
    while True:
        try:
            cluster = _cluster(rng, int(_one_of(rng, 1, 2, 2, 3, 4, 5)))
            ops = min(int(rng.integers(1, 41)), int(rng.integers(1, 41)))
            return Problem(_graph(rng, cluster, ops), cluster, rules=_rules(rng))
        except SituateError as error:
            if not any(why in str(error) for why in UNPLACEABLE):
                raise


def small_problem(seed: int) -> Problem:
    """A problem of 2 to 7 ops on 1 to 3 devices, of which most hold only a part of all bytes.

    All objectives and all named rules take turns from seed to seed.
    """
    rng = np.random.default_rng((seed, 1))
    objective, rules = OBJECTIVES[seed % 3], [*RULES.values()][seed // 3 % 4]
    while True:
        try:
            cluster = _cluster(rng, int(_one_of(rng, 1, *[2] * 5, *[3] * 5)))
            graph = _graph(rng, cluster, int(_one_of(rng, 2, 3, 4, 5, 5, 6, 6, 6, 7, 7, 7)))
            return Problem(graph, _tight(rng, cluster, graph), objective, rules)
        except SituateError as error:
            if not any(why in str(error) for why in UNPLACEABLE):
                raise


def blocking_problem(seed: int) -> Problem:
    """A problem of 2 to 6 ops on two or three devices whose transfers are blocking, for time; about
    half of them by REGAL's rules."""
    rng = np.random.default_rng((seed, 2))
    while True:
        try:
            cluster = replace(_cluster(rng, int(_one_of(rng, 2, 2, 2, 3))), transfers="blocking")
            graph = _graph(rng, cluster, int(_one_of(rng, 2, 3, 4, 5, 5, 6, 6)))
            tight = rng.random() < 0.3
            cluster = _tight(rng, cluster, graph) if tight else _roomy(cluster)
            problem = Problem(graph, cluster, "time", _blocking_rules(rng))
            # So few items that all orders can be looked at, where memory decides which fit.
            if problem.n + (problem.d - 1) * len(problem.size) <= (8 if tight else 11):
                return problem
        except SituateError as error:
            if not any(why in str(error) for why in UNPLACEABLE):
                raise


def _roomy(cluster: Cluster) -> Cluster:
    devices = tuple(structs.replace(device, memory=None) for device in cluster.devices)
    return replace(cluster, devices=devices)


def _blocking_rules(rng: Generator) -> Rules:
    if rng.random() < 0.7:
        return RULES[_one_of(rng, "regal", "regal", "situate")]
    memory = _one_of(rng, "time", "persistent", "step")
    contention, signals = bool(rng.random() < 0.6), bool(rng.random() < 0.7)
    return Rules("drawn", "blocking", contention, signals, memory)


def random_decision(problem: Problem, seed: int) -> Decision:
    """A placement that respects units and the devices of ops, and priorities with many ties."""
    rng = np.random.default_rng(seed)
    of_unit = [int(rng.choice(np.flatnonzero(may))) for may in problem.allowed]
    if rng.random() < 0.1:
        of_unit = [int(np.flatnonzero(may)[0]) for may in problem.allowed]
    shape = (len(problem.size), problem.d)
    return Decision(
        np.array(of_unit, np.int32)[problem.unit],
        _priorities(rng, problem.n),
        _priorities(rng, shape) if rng.random() < 0.5 else None,
    )


def _one_of(rng: Generator, *options: Any) -> Any:
    return options[rng.integers(len(options))]


def _priorities(rng: Generator, shape: int | tuple[int, int]) -> NDArray[np.float32]:
    draw = rng.random()
    if draw < 0.5:
        return rng.integers(-1, 3, shape).astype(np.float32)
    if draw < 0.6:
        return np.zeros(shape, np.float32)
    return rng.normal(size=shape).astype(np.float32)


def _rules(rng: Generator) -> Rules:
    if rng.random() < 0.6:
        return RULES[_one_of(rng, "situate", "situate", "regal", "doppler")]
    transfers = _one_of(rng, "overlapped", "blocking")
    memory = _one_of(rng, "time", "persistent", "step")
    contention, signals = bool(rng.random() < 0.6), bool(rng.random() < 0.7)
    return Rules("drawn", transfers, contention, signals, memory)


def _tight(rng: Generator, cluster: Cluster, graph: Graph) -> Cluster:
    """The cluster with devices that hold so many parts of all bytes, two in five without limit."""
    total = sum(op.persistent + op.workspace for op in graph.ops)
    total += sum(tensor.size for tensor in graph.tensors)
    limits = [
        None if rng.random() < 0.4 else 1 + int(rng.uniform(0.1, 0.7) * total)
        for _ in cluster.devices
    ]
    devices = [
        structs.replace(device, memory=limit)
        for device, limit in zip(cluster.devices, limits, strict=True)
    ]
    return replace(cluster, devices=tuple(devices))


def _cluster(rng: Generator, d: int) -> Cluster:
    devices = tuple(
        Device(
            f"d{i}",
            kind=_one_of(rng, *KINDS),
            memory=None if rng.random() < 0.5 else int(rng.integers(5, 100)),
        )
        for i in range(d)
    )
    links = [_link(rng, "*", "*")]
    for _ in range(int(rng.integers(0, 4))):
        links.append(_link(rng, *rng.choice([device.name for device in devices], 2)))
    return Cluster(
        "drawn",
        devices,
        tuple(links),
        transfers=_one_of(rng, "overlapped", "blocking"),
        synchronisation=float(_one_of(rng, 0, 0, 1, 0.37)),
    )


def _link(rng: Generator, source: str, target: str) -> Link:
    channels = ["", "", "bus", "from-{from}", "to-{to}", "other"]
    return Link(
        str(source),
        str(target),
        bandwidth=float(_one_of(rng, np.inf, 1, 2, 10, 3.7)),
        latency=float(_one_of(rng, 0, 0, 1, 0.21)),
        channel=_one_of(rng, *channels),
        both=bool(rng.random() < 0.7),
    )


def _graph(rng: Generator, cluster: Cluster, n: int) -> Graph:
    draw_seconds = _whole_seconds if rng.random() < 0.5 else _real_seconds
    position = rng.permutation(n)
    ops = tuple(_op(rng, f"op{j}", cluster, draw_seconds) for j in range(n))
    density = float(_one_of(rng, 0.5, 1.0, 1.7))
    tensors = tuple(
        _tensor(rng, f"t{t}", position, draw_seconds) for t in range(round(n * density))
    )
    control = [_edge(rng, position) for _ in range(int(rng.integers(0, n + 1)))] if n > 1 else []
    return Graph("drawn", ops, tensors, tuple(control))


def _whole_seconds(rng: Generator) -> float:
    return float(rng.integers(0, 4))


def _real_seconds(rng: Generator) -> float:
    return 0.0 if rng.random() < 0.15 else float(rng.exponential())


def _op(rng: Generator, name: str, cluster: Cluster, draw_seconds: Any) -> Op:
    equal = rng.random() < 0.5
    everywhere = draw_seconds(rng)
    seconds = {
        device: everywhere if equal else draw_seconds(rng)
        for device in cluster.names
        if rng.random() < 0.95
    }
    pins = [*cluster.names, *(device.kind for device in cluster.devices)]
    return Op(
        name,
        seconds=seconds or {cluster.names[0]: everywhere},
        persistent=_bytes(rng),
        workspace=_bytes(rng),
        group=f"g{rng.integers(3)}" if rng.random() < 0.2 else None,
        device=_one_of(rng, *pins) if rng.random() < 0.04 else None,
    )


def _tensor(rng: Generator, name: str, position: NDArray[Any], draw_seconds: Any) -> Tensor:
    producer = int(rng.integers(len(position)))
    later = np.flatnonzero(position > position[producer])
    count = min(len(later), int(_one_of(rng, 0, 1, 1, 1, 2, 3, 6)))
    return Tensor(
        name,
        producer,
        _bytes(rng),
        tuple(int(c) for c in rng.choice(later, count, replace=False)),
        output=bool(rng.random() < 0.15),
        resident=bool(rng.random() < 0.15),
        seconds=draw_seconds(rng) if rng.random() < 0.25 else None,
    )


def _bytes(rng: Generator) -> int:
    return 0 if rng.random() < 0.3 else int(rng.integers(1, 12))


def _edge(rng: Generator, position: NDArray[Any]) -> tuple[int, int]:
    a, b = (int(op) for op in rng.choice(len(position), 2, replace=False))
    return (a, b) if position[a] < position[b] else (b, a)
