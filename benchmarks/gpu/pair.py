"""Stage: a network on the GPU and the CPU together.

Profiles it on both, plans it by `auto` and cut once at random between modules, runs both plans,
and compares their numbers with those of eager PyTorch on the CPU.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

import situate
from benchmarks.gpu import hardware
from benchmarks.gpu.process import Context
from benchmarks.lib import placements
from benchmarks.runtime.runtime_cases import Case, profiled
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.results.expected import expected_seconds
from situate.runtime.equality import COMPARED_STEPS, compare
from situate.runtime.hardware import real_devices
from situate.runtime.measure import measure as measure_steps
from situate.runtime.model_state.optimizers import default_optimizer
from situate.runtime.step import PlacedStep
from situate.schedule.schedule import Schedule

TOLERANCE = 1e-3
"""Largest difference of a loss, a parameter, a buffer or the optimiser's state after
`COMPARED_STEPS` steps, relative to numbers above 1 (`situate.runtime.equality`): sums of float32 in
another order, products without tfloat32."""

TIME_LIMIT = 5.0


def measure(context: Context) -> None:
    """The profile's links first; then each plan's prediction, measurement and difference."""
    (name,) = context.arguments
    torch.backends.cudnn.allow_tf32 = False
    case, cluster = Case(name), hardware.machine(context)
    context.note(network=name, ops=len(case.program.graph.ops), tolerance=TOLERANCE)
    context.take_device()
    on_cpu = hardware.wall_seconds(context, case.unplaced(), 3) / 3
    context.note(eager_cpu_seconds=on_cpu)
    context.attempt("eager", lambda: context.note(eager_seconds=_eager(context, case)))
    cluster, costs = profiled(case, cluster)
    links = [{"from": a.source, "to": a.target, "latency": a.latency, "bandwidth": a.bandwidth}
             for a in costs.links]  # fmt: skip
    context.note(links=links, synchronisation=costs.synchronisation, step_seconds=costs.step)
    problem = case.problem(cluster, costs)
    plans: dict[str, Any] = {}
    for plan, schedule in _schedules(context, problem):
        plans[plan] = _predict(problem, schedule)
        for part, figures in (("run", _run), ("compare", _compare)):
            work = partial(figures, context, case, cluster, schedule)
            plans[plan] |= context.attempt(f"{plan}, {part}", work) or {}
            context.note(plans=plans)


def _eager(context: Context, case: Case) -> float:
    """Seconds of eager PyTorch's step on the device."""
    model, inputs, loss = case.built
    model = case.copied().to(context.device)
    tensors = [tensor.to(context.device) for tensor in inputs]
    optimizer = default_optimizer(case.kind, list(model.parameters()))

    def step() -> None:
        optimizer.zero_grad()
        loss(model, *tensors).backward()
        optimizer.step()

    hardware.wall_seconds(context, step, 2)
    return hardware.wall_seconds(context, step, 5) / 5


def _schedules(context: Context, problem: Problem) -> list[tuple[str, Schedule]]:
    limit = TIME_LIMIT / 10 if context.tiny else TIME_LIMIT
    result = situate.solve(problem, time_limit=limit, seed=context.seed)
    cut = placements.contiguous(problem, np.random.default_rng(context.seed))
    return [("auto", result.schedule), ("cut", cut)]


def _predict(problem: Problem, schedule: Schedule) -> dict[str, Any]:
    return {
        "planned_seconds": schedule.makespan,
        "predicted_seconds": expected_seconds(problem, schedule),
        "planned_bytes": schedule.peak.tolist(),
        "ops": np.bincount(schedule.placement, minlength=problem.d).tolist(),
        "transfers": len(schedule.tensor),
    }


def _run(context: Context, case: Case, cluster: Cluster, schedule: Schedule) -> dict[str, Any]:
    with case.placed(schedule, cluster, keep=False) as step:
        times = measure_steps(step, case.inputs, 4 if context.tiny else 11)
        peak = step.memory(*case.inputs)
    return {
        "seconds": times.median,
        "first_seconds": times.first,
        "fastest": min(times.seconds),
        "held_bytes": peak,
    }


def _compare(context: Context, case: Case, cluster: Cluster, schedule: Schedule) -> dict[str, Any]:
    """The differences from eager PyTorch's steps on the CPU, and the verdict."""
    placed = case.program_of(schedule, cluster)
    equality = compare(
        case.copied(),
        case.inputs,
        case.built[2],
        lambda parameters: default_optimizer(case.kind, parameters),
        lambda model, optimizer: PlacedStep(
            placed, model, optimizer, real_devices(cluster), seed=context.seed
        ),
        seed=context.seed,
    )
    return {
        "steps": COMPARED_STEPS,
        "equal": equality.within(TOLERANCE),
        "loss_difference": equality.loss_difference,
        "parameter_difference": equality.parameter_difference,
        "parameter": equality.name,
        "optimizer_difference": equality.optimizer_difference,
    }
