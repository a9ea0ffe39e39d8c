"""Random layered graphs on 2 to 16 unequal devices, with tight memory or a shared medium.

A device is up to four times as fast as another. Where memory is tight, all d devices together have
1 + d / 8 times the bytes that the graph takes on one device, in unequal parts: each holds copies of
its inputs.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

from msgspec import structs

from situate.bench.instances import Instance
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers.evaluate import evaluate

DEVICES = (2, 4, 8, 16)
OPS = (100, 400)
ROOM_OF_COPIES = 1 / 8
"""Bytes of each device for copies of tensors, over all that one device needs."""


def instances() -> list[Instance]:
    """With and without tight memory, with and without a shared medium."""
    return [
        _instance(seed, *settings)
        for seed, settings in enumerate(product(OPS, DEVICES, (False, True), (False, True)))
    ]


def _instance(seed: int, ops: int, devices: int, tight: bool, shared: bool) -> Instance:
    medium = "one medium" if shared else "own links"
    name = f"{ops} ops on {devices}, {'tight' if tight else 'ample'} memory, {medium}"

    def make() -> Problem:
        graph, cluster = layered(ops, seed), _cluster(devices, seed, shared)
        return Problem(graph, _tight(graph, cluster, seed) if tight else cluster)

    return Instance("unequal", name, make)


def _cluster(devices: int, seed: int, shared: bool) -> Cluster:
    draw = random.Random(f"devices {seed}")
    # At most a factor of four apart, evenly on a logarithmic scale.
    speeds = [4 ** draw.random() for _ in range(devices)]
    device_list = tuple(
        Device(f"d{i}", flops={"float32": 5e12 * s}, bandwidth=400e9 * s, launch=5e-6)
        for i, s in enumerate(speeds)
    )
    link = Link("*", "*", bandwidth=10e9, latency=10e-6, channel="medium" if shared else "")
    return Cluster(f"{devices} unequal devices", device_list, (link,))


def _tight(graph: Graph, cluster: Cluster, seed: int) -> Cluster:
    """The cluster with limits of memory."""
    alone = Problem(graph, replace(cluster, devices=cluster.devices[:1]))
    needed = max(evaluate(alone, {op.name: "d0" for op in graph.ops}).peak_memory.values())
    draw = random.Random(f"memory {seed}")
    parts = [draw.uniform(0.5, 1.5) for _ in cluster.devices]
    together = needed * (1 + ROOM_OF_COPIES * len(parts))
    devices = tuple(
        structs.replace(device, memory=round(together * part / sum(parts)))
        for device, part in zip(cluster.devices, parts, strict=True)
    )
    return replace(cluster, name=f"{cluster.name}, tight memory", devices=devices)


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
    # The fourth of eight ops is a parameter, and the fifth reads it.
    group = f"parameter{op // 8}" if op % 8 in (3, 4) else None
    if _is_parameter(op):
        persistent = draw.randrange(2**18, 2**22)
        return Op(name, "parameter", persistent=persistent, group=group, module=module)
    flops, traffic = draw.randrange(10**8, 10**10), draw.randrange(10**6, 10**8)
    return Op(name, "aten.mm", flops=flops, traffic=traffic, group=group, module=module)


def _tensor(op: int, readers: list[int], ops: int, draw: random.Random) -> Tensor:
    readers = sorted(set(readers) - {op})
    size = draw.randrange(2**10, 2**22)
    return Tensor(f"tensor{op}", op, size, tuple(readers), resident=_is_parameter(op))
