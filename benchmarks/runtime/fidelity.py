"""Predicted against measured: step time and peak memory of ten placements of each network on two
CPU devices of one thread.

Costs are held out: a profile measures each op, and tensors between devices, in processes of its
own before any placement runs; no step time of a placement reaches them. A network's placements are
`single`, `auto`, three cuts between modules, two with modules and three with ops at random.
Measured is the median of steps by the clock of the process that calls them, by the papers' protocol
of 11 steps of which the first is dropped. Before each of them comes a step of `single`: the ratio
of the two is predicted and measured too, for a machine that is slower now than when it was profiled
is slower in both. How far these steps of `single` lie from their own median over all placements is
about the least error of any prediction. Time and peak memory are predicted twice: by the plan;
and, for the comparison with the measurement, with contention between devices and by the program
that was cut along the plan. Written after every placement; at the same clean commit it goes on,
with a new profile for a network that is half done.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

import situate
from benchmarks.lib import placements
from benchmarks.lib.record import RESULTS, Row, Target, rows_at_commit, show, write
from benchmarks.runtime.runtime_cases import Case, cpus, profiled
from situate.data.problem import Problem
from situate.report.measured_run import measured_run
from situate.runtime.measure import STEPS, measure
from situate.runtime.programs.footprint import footprint
from situate.runtime.step import PlacedStep
from situate.schedule.schedule import Schedule

NETWORKS = (
    "cifar_cnn",
    "resnet50",
    "inception_v3",
    "rnnlm",
    "nmt2",
    "gpt2",
    "moe",
    "two_branches",
)
TABLE = "placements"
KINDS = {
    "contiguous": (placements.contiguous, 3),
    "by module": (placements.by_module, 2),
    "by unit": (placements.by_unit, 3),
}
"""Functions that draw placements at random, and how many each draws."""

TRIES = 20
"""Draws of a kind: a network of few modules has few cuts."""

PLACEMENTS = 2 + sum(count for _, count in KINDS.values())

ERRORS = {
    "error": "the step time",
    "ratio_error": "its ratio to one device's, called in turn",
}
MEDIAN_ERROR, NINETIETH_ERROR, RANKS, MEMORY_ERROR = 0.10, 0.25, 0.9, 0.05


@dataclass(frozen=True)
class Alone:
    """The step of `single`, and the seconds that it is predicted to take."""

    step: PlacedStep
    predicted: float

    def measured(self, inputs: Sequence[torch.Tensor]) -> float:
        """Seconds of one step."""
        began = time.perf_counter()
        self.step(*inputs)
        return time.perf_counter() - began


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--steps", type=int, default=STEPS, help="the first of which is dropped")
    parser.add_argument("--placements", type=int, default=PLACEMENTS, help="of each network")
    parser.add_argument("--time-limit", type=float, default=10.0, help="of auto, seconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows: list[Row] = [
        row
        for row in rows_at_commit(RESULTS / "fidelity.json", TABLE)
        if row["network"] in options.networks
    ]
    for name in options.networks:
        for row in _missing(Case(name), rows, options):
            rows.append(row)
            write(RESULTS / "fidelity.json", {TABLE: rows}, options=options)
            print(_line(row), flush=True)
    summaries = list(_summaries(rows))
    targets = list(_targets(rows, summaries))
    machine = [_machine(rows)]
    tables: dict[str, list[Row]] = {"networks": summaries, "machine": machine, TABLE: rows}
    write(RESULTS / "fidelity.json", tables, targets, options=options)
    show("fidelity: networks", summaries)
    show("fidelity: the machine", machine)
    show("fidelity: targets", [asdict(target) for target in targets])


def _missing(case: Case, rows: list[Row], options: argparse.Namespace) -> Iterator[Row]:
    """The rows of a network that are not there yet; it is profiled if there are any."""
    there = {row["placement"] for row in rows if row["network"] == case.name}
    if len(there) < options.placements:
        problem = case.problem(*profiled(case, cpus(2)))
        single = situate.solve(problem, "single").schedule
        with case.placed(single, problem.cluster, keep=False) as step:
            alone = Alone(step, single.makespan)
            for name, schedule in islice(_schedules(problem, single, options), options.placements):
                if name not in there:
                    yield _row(case, problem, name, schedule, alone, options.steps)


def _schedules(
    problem: Problem, single: Schedule, options: argparse.Namespace
) -> Iterator[tuple[str, Schedule]]:
    """By name; those at random differ in their placement from one another."""
    yield "single", single
    result = situate.solve(problem, time_limit=options.time_limit, seed=options.seed)
    yield "auto", result.schedule
    drawn: set[bytes] = set()
    for kind, (draw, count) in KINDS.items():
        generator, number = np.random.default_rng(options.seed), 0
        for _ in range(TRIES):
            schedule = draw(problem, generator)
            if number < count and schedule.placement.tobytes() not in drawn:
                drawn.add(schedule.placement.tobytes())
                yield f"{kind} {number}", schedule
                number += 1


def _row(
    case: Case, problem: Problem, name: str, schedule: Schedule, alone: Alone, steps: int
) -> Row:
    cut = case.program_of(schedule, problem.cluster)
    beside: list[float] = []
    with case.ready(cut, problem.cluster, keep=False) as step:
        measured = measure(
            step, case.inputs, steps, lambda _: beside.append(alone.measured(case.inputs))
        )
        peaks = step.memory(*case.inputs)
    planned, footprints = schedule.peak.tolist(), footprint(cut, problem.workspace)
    result = measured_run(problem, schedule, measured, cut.used)
    expected = result.predicted
    low, high = np.quantile(measured.seconds, (0.25, 0.75))
    ratio = expected / alone.predicted
    ratios = [s / b for s, b in zip(measured.seconds, beside[1:], strict=True)]
    measured_ratio = statistics.median(ratios)
    return {
        "network": case.name,
        "placement": name,
        "devices_used": len(cut.used),
        "transfers": len(schedule.tensor),
        "planned_seconds": schedule.makespan,
        "predicted_seconds": expected,
        "measured_seconds": measured.median,
        "measured_best": min(measured.seconds),
        "measured_low": float(low),
        "measured_high": float(high),
        "plan_error": schedule.makespan / measured.median - 1,
        "error": expected / measured.median - 1,
        "error_at_pace": result.error_at_pace,
        "error_to_best": expected / min(measured.seconds) - 1,
        "alone_seconds": statistics.median(beside[1:]),
        "predicted_ratio": ratio,
        "measured_ratio": measured_ratio,
        "ratio_error": ratio / measured_ratio - 1,
        "planned_bytes": [planned[d] for d in cut.used],
        "predicted_bytes": [footprints[d] for d in cut.used],
        "measured_bytes": peaks,
        "plan_memory_error": _largest([planned[d] for d in cut.used], peaks),
        "memory_error": _largest([footprints[d] for d in cut.used], peaks),
    }


def _largest(predicted: Sequence[int], measured: Sequence[int]) -> float:
    """The largest error of a device."""
    return max((p / m - 1 for p, m in zip(predicted, measured, strict=True)), key=abs)


def _line(row: Row) -> str:
    seconds = f"predicted {row['predicted_seconds']:.4g} s, measured {row['measured_seconds']:.4g}"
    return f"{row['network']}, {row['placement']}: {seconds} s ({row['error']:+.1%})"


def _summaries(rows: list[Row]) -> Iterator[Row]:
    for network in dict.fromkeys(row["network"] for row in rows):
        mine = [row for row in rows if row["network"] == network]
        errors = [abs(row["error"]) for row in mine]
        noise = [(r["measured_high"] - r["measured_low"]) / r["measured_seconds"] for r in mine]
        predicted = [row["predicted_seconds"] for row in mine]
        ratio_errors = [abs(row["ratio_error"]) for row in mine]
        alone = [row["alone_seconds"] for row in mine]
        memory = [abs(row["memory_error"]) for row in mine]
        planned = [abs(row["plan_memory_error"]) for row in mine]
        yield {
            "network": network,
            "placements": len(mine),
            "median_error": statistics.median(errors),
            "median_plan_error": statistics.median(abs(row["plan_error"]) for row in mine),
            "largest_error": max(errors),
            "bias": statistics.median(row["error"] for row in mine),
            "median_error_at_pace": statistics.median(abs(row["error_at_pace"]) for row in mine),
            "median_error_to_best": statistics.median(abs(row["error_to_best"]) for row in mine),
            "median_ratio_error": statistics.median(ratio_errors),
            "largest_ratio_error": max(ratio_errors),
            "rank_correlation": _spearman(mine, "seconds"),
            "rank_correlation_of_ratios": _spearman(mine, "ratio"),
            "predicted_range": max(predicted) / min(predicted),
            "measured_range_alone": max(alone) / min(alone),
            "largest_memory_error": max(memory),
            "median_plan_memory_error": statistics.median(planned),
            "largest_plan_memory_error": max(planned),
            "middle_half_of_steps": statistics.median(noise),
        }


def _machine(rows: list[Row]) -> Row:
    """The machine's own spread: the same step on one device, measured beside every placement, and
    its distance from its median."""
    errors: list[float] = []
    for network in dict.fromkeys(row["network"] for row in rows):
        alone = [row["alone_seconds"] for row in rows if row["network"] == network]
        errors += [abs(statistics.median(alone) / seconds - 1) for seconds in alone]
    return {
        "what": "steps of single, predicted by their own median",
        "median_error": float(np.median(errors)),
        "ninetieth_error": float(np.quantile(errors, 0.9)),
    }


def _spearman(rows: list[Row], what: str) -> float | None:
    """Rank correlation of predicted and measured values; None of fewer than three."""
    if len(rows) < 3:
        return None
    predicted, measured = (_ranks(rows, f"{which}_{what}") for which in ("predicted", "measured"))
    return float(np.corrcoef(predicted, measured)[0, 1])


def _ranks(rows: list[Row], column: str) -> NDArray[np.intp]:
    return np.argsort(np.argsort([row[column] for row in rows]))


def _targets(rows: list[Row], summaries: list[Row]) -> Iterator[Target]:
    for column, what in ERRORS.items():
        errors = [abs(row[column]) for row in rows]
        yield _at_most(f"median error of {what}", MEDIAN_ERROR, float(np.median(errors)))
        yield _at_most("90th percentile of it", NINETIETH_ERROR, float(np.quantile(errors, 0.9)))
    correlations = {"step times": _spearman(rows, "seconds")} | {
        f"{row['network']}'s ratios": row["rank_correlation_of_ratios"] for row in summaries
    }
    for what, result in correlations.items():
        if result is not None:
            yield Target(
                f"rank correlation of {what}",
                f"at least {RANKS:g}",
                f"{result:.3f}",
                result >= RANKS,
            )
    memory = max(abs(row["memory_error"]) for row in rows)
    yield _at_most("largest error of a device's peak memory", MEMORY_ERROR, memory)


def _at_most(what: str, wanted: float, measured: float) -> Target:
    return Target(what, f"at most {wanted:.0%}", f"{measured:.1%}", measured <= wanted)


if __name__ == "__main__":
    main()
