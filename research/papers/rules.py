"""Figures that need no learning: one device, the expert, the partitioners, the lower bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.lib.record import Row
from research.papers import cifar_tensorflow
from research.papers.cases import Case, uncalibrated
from situate.bounds.lower_bound import lower_bound
from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers import solve
from situate.solvers.heuristics.baselines import everything_on

GPU, CPU = "single", "cpu"
"""All on one GPU, or on the CPU: the papers' columns, where `single` would take the better."""


def row(case: Case, methods: Sequence[str]) -> Row:
    """Seconds of each method's placement on the machine that the learners measure on, which runs
    ready ops in the graph's order; None where it does not fit in memory."""
    problem = case.problem()
    return {
        "case": case.name,
        "network": case.network,
        "gpus": case.gpus,
        "preset": f"{case.machine}-{case.gpus}",
        "ops": problem.n,
        "flops": sum(op.flops for op in problem.graph.ops),
        "tensor_bytes": int(problem.size.sum()),
        "uncalibrated_single": uncalibrated(case),
        "factor": case.factor,
        "lower_bound": lower_bound(problem),
        **{method: seconds(problem, _placement(problem, method)) for method in methods},
    }


def _placement(problem: Problem, method: str) -> Placement:
    if method == GPU or (method == "expert" and problem.graph.name == cifar_tensorflow.NAME):
        # As in the zoo, the expert keeps a convolutional network on one device.
        return everything_on(problem, accelerators(problem)[0])
    if method == CPU:
        kinds = [device.kind for device in problem.cluster.devices]
        return everything_on(problem, kinds.index("cpu"))
    return solve(problem, method, evaluations=1, threads=1).placement


def seconds(problem: Problem, placement: Placement) -> float | None:
    """Seconds of a step on the learners' machine; None where it does not fit in memory."""
    seconds = SimulatedMachine(problem, threads=1).measure(placement[None], 0).seconds[0]
    return float(seconds) if np.isfinite(seconds) else None
