"""Problems of `situate.sharding` in a bench: their content, their size and their solvers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from situate.errors import SituateError
from situate.sharding import (
    ShardingProblem,
    StageProblem,
    solve_sharding,
    solve_stages,
)

AnySharding = ShardingProblem | StageProblem

METHOD = "auto"
"""The name under which the solvers run."""


@dataclass(frozen=True)
class ShardingOutcome:
    """The plan of a sharding problem, in the terms of a row.

    Attributes:
        value: a cost or seconds; infinite without a plan.
        feasible: whether the plan fits.
        lower_bound: None where it is infinite.
        evaluations: rounds or trials.
        seconds: of the search.
    """

    value: float
    feasible: bool
    lower_bound: float | None
    evaluations: int
    seconds: float
    bounded_by: ClassVar[str] = "relaxation"
    history: ClassVar[tuple[tuple[float, int, float], ...]] = ()


def solve_sharding_problem(
    problem: AnySharding, method: str, time_limit: float, seed: int, threads: int
) -> ShardingOutcome:
    """The best plan of situate's solver.

    Raises:
        SituateError: another method than `auto`.
    """
    if method != METHOD:
        raise SituateError(f"{method} places ops on devices: shardings have the method 'auto'")
    if isinstance(problem, StageProblem):
        stages = solve_stages(problem, time_limit=time_limit)
        value, bound, rounds = stages.value, stages.bound, stages.trials
        return _outcome(value, stages.feasible, bound, rounds, stages.seconds)
    plan = solve_sharding(problem, time_limit=time_limit, seed=seed, threads=threads)
    value = plan.cost if plan.feasible else math.inf
    return _outcome(value, plan.feasible, plan.bound, plan.rounds, plan.seconds)


def _outcome(
    value: float, feasible: bool, bound: float, rounds: int, seconds: float
) -> ShardingOutcome:
    lower_bound = float(bound) if feasible else None
    return ShardingOutcome(float(value), feasible, lower_bound, rounds, seconds)


def size(problem: AnySharding) -> tuple[int, int, str]:
    """Ops or layers, devices (0 where the problem has none), and the objective."""
    if isinstance(problem, StageProblem):
        return len(problem.layers), problem.devices, "throughput"
    return len(problem.costs), 0, "cost"


def sharding_hash(problem: AnySharding) -> str:
    """SHA-256 in hexadecimal of everything but names."""
    digest = hashlib.sha256()
    parts = _stage_parts if isinstance(problem, StageProblem) else _sharding_parts
    for part in parts(problem):  # type: ignore[arg-type]
        digest.update(part)
    return digest.hexdigest()


def _sharding_parts(problem: ShardingProblem) -> Iterator[bytes]:
    sizes = [len(cost) for cost in problem.costs]
    yield msgspec.msgpack.encode((sizes, [*problem.edges], problem.limit))
    for array in (*problem.costs, *problem.usages, problem.intervals, *problem.tables):
        yield array.astype("<i8").tobytes()


def _stage_parts(problem: StageProblem) -> Iterator[bytes]:
    limits = (problem.devices, problem.memory, problem.bandwidth, problem.batches)
    edges = [[a, b, size] for (a, b), size in problem.edges.items()]
    layers = [
        [number, [[degree, [*rows]] for degree, rows in layer.options.items()]]
        for number, layer in problem.layers.items()
    ]
    yield msgspec.msgpack.encode((limits, edges, layers))
