"""Plans of steps in parts."""

from __future__ import annotations

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.solvers import solve

FLOPS = {"float32": 1e12, "float64": 5e11}


def gpus(count: int, kind: str = "gpu") -> Cluster:
    """Equal devices that hold any model."""
    devices = (Device(f"gpu{i}", kind, flops=FLOPS, bandwidth=5e11) for i in range(count))
    return Cluster("equal", tuple(devices), (Link("*", "*", 5e10),))


def plan(graph: Graph, count: int, kind: str = "gpu") -> tuple[Problem, Schedule]:
    """The problem on that many devices, and its plan by `tensor_parallel`."""
    problem = Problem(graph, gpus(count, kind))
    return problem, solve(problem, "tensor_parallel").schedule
