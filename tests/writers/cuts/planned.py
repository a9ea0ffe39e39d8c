"""Plans of steps in parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np

from situate.data.cluster import Cluster, Device, Link
from situate.data.cuts import CutParameter, parse_cuts
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode
from situate.solvers import solve
from situate.writers.cuts.styles import LINEAR

FLOPS = {"float32": 1e12, "float64": 5e11}

MEGATRON = ("heads=2", "features=2", "vocabulary=2", "sequence=2")
"""Megatron-LM's tensor parallelism, with norms on parts of the sequence."""


def gpus(count: int, kind: str = "gpu") -> Cluster:
    """Equal devices that hold any model."""
    devices = (Device(f"gpu{i}", kind, flops=FLOPS, bandwidth=5e11) for i in range(count))
    return Cluster("equal", tuple(devices), (Link("*", "*", 5e10),))


@cache
def captured(
    build: str, *cuts: str, shares: tuple[int, ...] = (), replicas: tuple[int, ...] = ()
) -> Graph:
    """A step of a model of `meshes`, in parts and in slices of these shares."""
    from situate.torch_capture import capture
    from tests.writers.cuts.meshes import BUILDS

    slices = Slices(shares, replicas=replicas) if shares else None
    return capture(BUILDS[build], cuts=parse_cuts(cuts), slices=slices)


def plan(graph: Graph, count: int, kind: str = "gpu") -> tuple[Problem, Schedule]:
    """The problem on that many devices, and its plan by `tensor_parallel`."""
    problem = Problem(graph, gpus(count, kind))
    return problem, solve(problem, "tensor_parallel").schedule


def products(
    layers: int = 2, parts: int = 2, slices: int = 0, cuts: str = "", whole: str = "-"
) -> Graph:
    """Layers of two products and a norm, by hand.

    Args:
        cuts: of the ops; by default the features in equal parts.
        whole: the weight that is not cut.
    """
    ops: list[Op] = []
    tensors: list[Tensor] = []
    divisions = []

    def add(name: str, reads: Sequence[int], **fields: Any) -> int:
        for source in reads:
            read = (*tensors[source].consumers, len(ops))
            tensors[source] = msgspec.structs.replace(tensors[source], consumers=read)
        tensors.append(Tensor(f"{name}:0", len(ops), 8))
        seconds = {"*": 0.0 if fields["kind"] == "parameter" else 1.0}
        ops.append(Op(name, seconds=seconds, phase="forward", **fields))
        return len(ops) - 1

    weights: dict[tuple[str, int | None], int] = {}
    for layer in range(layers):
        for dim, which in enumerate(("up", "down", "norm")):
            module, name = f"layers.{layer}.{which}", f"layers.{layer}.{which}.weight"
            is_cut = which != "norm" and name != whole
            for k in range(parts) if is_cut else [None]:
                title = f"part{k}/{name}" if is_cut else name
                kind = {"kind": "parameter", "persistent": 8, "module": module, "part": k}
                weights[name, k] = add(title, [], **kind)
            if is_cut:
                bounds = tuple(range(0, 4 * parts + 1, 4))
                readers = ((module, LINEAR),)
                divisions.append(CutParameter(name, "features", dim, bounds, readers=readers))
    for piece in range(slices) if slices else [None]:
        results: list[int] = []
        for layer in range(layers):
            for which in ("up", "down"):
                module, name = f"layers.{layer}.{which}", f"layers.{layer}.{which}.weight"
                sources = [weights.get((name, k), weights.get((name, None))) for k in range(parts)]
                results = [
                    add(
                        f"slice{piece}/part{k}/{module}/mm",
                        [source, *results],
                        kind="aten.mm",
                        module=module,
                        part=k,
                        slice=piece,
                    )
                    for k, source in enumerate(sources)
                ]
    cut = Slices((1,) * slices, {"x": 0}, "mean") if slices else None
    own = parse_cuts([cuts or f"features={parts}"])
    graph = Graph("products", tuple(ops), tuple(tensors), slices=cut, cuts=own)
    return dataclasses.replace(graph, cut_parameters=tuple(divisions))


def on(graph: Graph, devices: Callable[[Op], int], cluster: Cluster) -> tuple[Problem, Schedule]:
    """A plan with each op on the device that the function names."""
    problem = Problem(graph, cluster)
    placement = np.array([devices(op) for op in graph.ops], np.int32)
    return problem, decode(problem, placement, np.arange(problem.n, dtype=np.int32), "eager")


def by_part(op: Op) -> int:
    """Part k on device k."""
    return op.part or 0


def layer(op: Op) -> int:
    """The number of an op's layer in `products`."""
    return int(op.module.split(".")[1])


def by_layer(op: Op) -> int:
    """Two layers a team, on which part k is on the k-th device."""
    return layer(op) // 2 * 2 + (op.part or 0)


def of_kind(kind: str, *cuts: str) -> Graph:
    """Products whose classes are of another kind."""
    graph = dataclasses.replace(products(), cuts=parse_cuts([f"{kind}=2", *cuts]))
    parameters = [msgspec.structs.replace(p, kind=kind) for p in graph.cut_parameters]
    return dataclasses.replace(graph, cut_parameters=tuple(parameters))


def index_of(graph: Graph, name: str) -> int:
    """The number of an op."""
    return next(j for j, op in enumerate(graph.ops) if op.name == name)
