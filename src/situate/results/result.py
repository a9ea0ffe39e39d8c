"""The result of a solver: the best decision, its schedule, a bound and the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from situate.bounds.rounding import gap
from situate.data.problem import Problem
from situate.results.expected import expected_seconds
from situate.results.plan import Plan, PlannedTransfer, tensor_names
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import DecoderName
from situate.simulation.transfer_order import TransferOrder

Knowledge = Literal["measured times only", "measured times and FLOPs", "told costs"]
"""A method's knowledge: measured steps and allowed devices; also FLOPs and memory traffic of ops;
or also the costs of ops and transfers, if only for groups or first placements."""

Overtime = Literal["first plan", "no plan"]
"""The reason why a search took longer than its time limit: its first plan that fits did, or no plan
fitted."""


@dataclass(frozen=True)
class WorkerProgress:
    """The workers that measure for a search, see `situate.Learning.workers`.

    Attributes:
        count: number of workers, without those that failed too often.
        busy: number of workers that are measuring.
        measured: samples measured so far.
        failures: failures so far.
    """

    count: int
    busy: int
    measured: int
    failures: int


@dataclass(frozen=True)
class Asynchrony:
    """The course of several controllers of one policy, see `situate.Learning.controllers`.

    Attributes:
        seconds: of the clock, until the last measurement.
        staleness: number of gradients by their staleness, the number of updates since their policy.
        clock: name of the clock.
        stalest: largest staleness of applied gradients; None for no limit.
    """

    seconds: float
    staleness: dict[int, int]
    clock: Literal["virtual", "wall"] = "virtual"
    stalest: int | None = None

    @property
    def dropped(self) -> int:
        """Gradients that were too stale."""
        if self.stalest is None:
            return 0
        return sum(count for late, count in self.staleness.items() if late > self.stalest)

    @property
    def updates(self) -> int:
        """All gradients, dropped ones included."""
        return sum(self.staleness.values())

    @property
    def mean_staleness(self) -> float:
        """Updates since the policy that a gradient is of, on average; 0 before the first."""
        return sum(late * count for late, count in self.staleness.items()) / max(1, self.updates)


@dataclass(frozen=True)
class Progress:
    """The progress of a search.

    Attributes:
        seconds: wall time so far.
        evaluations: decisions looked at.
        value: of the best plan so far, see `Result`; infinite before the first.
        feasible: whether that plan exceeds no device's capacity; False before the first.
        lower_bound: no plan that fits has a smaller value.
        workers: of a method that learns, once they measure; else None.
        asynchrony: of several controllers so far; else None.
    """

    seconds: float
    evaluations: int
    value: float
    feasible: bool
    lower_bound: float
    workers: WorkerProgress | None = None
    asynchrony: Asynchrony | None = None

    @property
    def figures(self) -> dict[str, float]:
        """Figures of workers and controllers, for tools that draw them over time; none without."""
        values = {}
        if self.workers is not None:
            values = {
                "workers/count": float(self.workers.count),
                "workers/busy": float(self.workers.busy),
                "workers/failures": float(self.workers.failures),
                "workers/samples_per_second": self.samples_per_second,
            }
        if self.asynchrony is not None:
            values["controllers/staleness"] = self.asynchrony.mean_staleness
        return values

    @property
    def samples_per_second(self) -> float:
        """Samples a second that workers measured; 0 without any."""
        count = self.workers.measured if self.workers else 0
        return count / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, eq=False)
class Result:
    """The best plan of a solver.

    Attributes:
        problem: of the plan.
        method: the solver's name.
        decoder: `eager`, `serial` or `calls`; see docs/execution-model.md.
        placement: (n,) device index of each op.
        order: (n,) op indices, the most urgent first.
        schedule: the decoded schedule.
        value: the objective: seconds (`time`), bytes (`memory`) or seconds between steps
            (`throughput`).
        lower_bound: no feasible plan has a smaller value; None beside an infeasible plan.
        feasible: true if no device's capacity is exceeded, and the step ends.
        evaluations: number of evaluated decisions.
        seconds: wall time.
        seed: of the search's randomness.
        history: (seconds, evaluations, value) at each improvement.
        samples: (evaluations,) seconds of a learning method's placements in turn, infinite where
            one failed; empty for other methods.
        transfers: the urgency of each transfer among the ops; None if each is as urgent as its most
            urgent consumer.
        measured: seconds of a step of this plan on the machine; None if not measured.
        bounded_by: the name of the lower bound, as in docs/bounds.md; None without a bound.
        asynchrony: of several controllers; None without them.
        knows: the method's knowledge of the machine; None if unknown.
        interrupted: true if Ctrl-C ended the search.
        overtime: the reason that `auto` exceeded the time limit; None if it did not.
    """

    problem: Problem
    method: str
    decoder: DecoderName
    placement: NDArray[np.int32]
    order: NDArray[np.int32]
    schedule: Schedule
    value: float
    lower_bound: float | None
    feasible: bool
    evaluations: int
    seconds: float
    seed: int
    history: tuple[tuple[float, int, float], ...]
    samples: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    transfers: TransferOrder | None = None
    measured: float | None = None
    bounded_by: str | None = None
    asynchrony: Asynchrony | None = None
    knows: Knowledge | None = None
    interrupted: bool = False
    overtime: Overtime | None = None

    @property
    def gap(self) -> float:
        """The relative distance of the value from the lower bound.

        It is exactly zero if only rounding is between the two, and infinite without a bound.
        """
        if self.lower_bound is None or not self.feasible:
            return float("inf")
        return gap(self.problem, self.value, self.lower_bound)

    @property
    def optimal(self) -> bool:
        """True if the bound proves that no plan is better, but for rounding."""
        return self.gap == 0

    @property
    def judged(self) -> float:
        """The figure for comparing plans: the measured time, else the value."""
        return self.value if self.measured is None else self.measured

    @property
    def rank(self) -> tuple[int, float, int]:
        """Sort key of results, the best first: bytes above the limits, the compared figure, the
        number of devices."""
        return self.schedule.excess(self.problem), self.judged, len(self.devices_used)

    @property
    def makespan(self) -> float:
        """Seconds of one step on its own."""
        return self.schedule.makespan

    @cached_property
    def expected(self) -> float:
        """Expected seconds of one step, with measured contention: see
        `situate.results.expected`."""
        return expected_seconds(self.problem, self.schedule)

    @property
    def throughput(self) -> float:
        """Steps per second in steady pipelined operation."""
        period = self.schedule.period(self.problem)
        return 1 / period if period > 0 else float("inf")

    @property
    def peak_memory(self) -> dict[str, int]:
        """Largest bytes in use, by device name."""
        return dict(zip(self.problem.cluster.names, map(int, self.schedule.peak), strict=True))

    @property
    def devices_used(self) -> list[str]:
        """Names of the devices that run at least one op that takes time or holds memory."""
        problem = self.problem
        in_use = np.zeros(problem.d, bool)
        seconds = problem.seconds[np.arange(problem.n), self.placement]
        in_use[self.placement[(seconds > 0) | (problem.persistent > 0)]] = True
        # A step without any work still has its devices.
        if not in_use.any():
            in_use[self.placement] = True
        return [
            name for name, is_used in zip(problem.cluster.names, in_use, strict=True) if is_used
        ]

    @cached_property
    def plan(self) -> Plan:
        """The file users keep."""
        names = [op.name for op in self.problem.graph.ops]
        devices = self.problem.cluster.names
        return Plan(
            graph=self.problem.graph.name,
            graph_hash=self.problem.graph.hash,
            cluster=self.problem.cluster.name,
            cluster_hash=self.problem.cluster.hash,
            rules=self.problem.rules.name,
            unit=self.problem.graph.unit,
            objective=self.problem.objective,
            method=self.method,
            decoder=self.decoder,
            seed=self.seed,
            evaluations=self.evaluations,
            seconds=self.seconds,
            value=self.value if isfinite(self.value) else None,
            lower_bound=self.lower_bound,
            feasible=self.feasible,
            makespan=self.makespan if isfinite(self.makespan) else None,
            peak_memory=self.peak_memory,
            costs_hash=self.problem.costs.hash if self.problem.costs else "",
            optimizer=self.problem.graph.optimizer,
            placement={names[op]: devices[self.placement[op]] for op in self.order},
            transfers=self._transfers(),
            slices=self.problem.graph.slices or msgspec.UNSET,
            recompute=[*self.problem.graph.recompute] or msgspec.UNSET,
            cuts=self.problem.graph.cuts or msgspec.UNSET,
        )

    def _transfers(self) -> list[PlannedTransfer] | msgspec.UnsetType:
        """The transfers as a plan names them."""
        if self.transfers is None:
            return msgspec.UNSET
        names = tensor_names(self.problem)
        devices, transfers = self.problem.cluster.names, self.transfers
        rows = zip(
            transfers.tensor.tolist(),
            transfers.target.tolist(),
            transfers.place.tolist(),
            strict=True,
        )
        return [(names[tensor], devices[target], place) for tensor, target, place in rows]

    def __repr__(self) -> str:
        fits = "fits" if self.feasible else "does not fit"
        about = f"{self.problem.graph.name} on {self.problem.cluster.name}, {self.method}"
        value = f"{self.problem.objective} {self.value:.6g}, gap {self.gap:.2g}"
        return f"<Result: {about}, {value}, {fits}>"

    def _repr_html_(self) -> str:
        from situate.report.html import to_html

        return to_html(self)
