"""The gain of two CPU devices of one thread each over one of them, with plans that `auto` makes of
steps whose batch is cut into slices, and how near the predicted seconds are.

One device takes the batch whole. Plans are made from measured costs, of the batch's size and of a
slice's. Steps keep no copies with which one that fails is undone, as PyTorch's do not. Beside them
slices run in processes that share nothing and update nothing, which shows the largest gain that
the machine allows. All run in turn; a figure is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np
import torch

import situate
from benchmarks.lib.record import Row, Target, record
from benchmarks.runtime.nothing_shared import NothingShared
from benchmarks.runtime.runtime_cases import OPTIMIZERS, Case, Turns, cpus, in_turn, profiled

NETWORKS = ("inception_v3", "resnet50", "gpt2_batch4")
LEAST = 1.85
"""Times as fast as one device."""

NEAR = 0.1
"""Most that predicted seconds may be off, as a share of the measured ones."""

WHOLE, SLICED, AUTO = "one device, whole batch", "one device, slices", "two devices, slices"
APART = "processes that share nothing"


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", choices=OPTIMIZERS, default=NETWORKS)
    parser.add_argument("--slices", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=90.0, help="of each network, about")
    parser.add_argument("--time-limit", type=float, default=10.0, help="of each plan, seconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = [row for name in options.networks for row in _rows(name, options)]
    plans = [row for row in rows if row["plan"] != APART]
    tables = {
        "two devices over one": plans,
        "what the machine gives": [row for row in rows if row["plan"] == APART],
    }
    record("sliced_speed", tables, list(_targets(plans)), options=options)


def _rows(name: str, options: argparse.Namespace) -> Iterator[Row]:
    whole = Case(name)
    sliced = replace(whole, slices=options.slices)
    cases = {WHOLE: whole, SLICED: sliced, AUTO: sliced}
    problems = {case.slices: case.problem(*profiled(case, cpus(2))) for case in (whole, sliced)}
    plans = {
        WHOLE: situate.solve(problems[1], "single"),
        SLICED: situate.solve(problems[options.slices], "single"),
        AUTO: situate.solve(
            problems[options.slices], time_limit=options.time_limit, seed=options.seed
        ),
    }
    with ExitStack() as stack:
        steps = [
            stack.enter_context(cases[name].placed(plan.schedule, plan.problem.cluster, keep=False))
            for name, plan in plans.items()
        ]
        apart = stack.enter_context(NothingShared(whole, options.slices))
        calls: list[Callable[[], object]] = [partial(step, *whole.inputs) for step in steps]
        calls.append(apart)
        times = in_turn(calls, options.seconds)
    print(f"{name}, rounds: {times.rounds}", flush=True)
    for column, (how, plan) in enumerate(plans.items()):
        planned = {
            "devices_used": len(np.unique(plan.placement)),
            "transfers": len(plan.schedule.tensor),
            "planned_seconds": plan.makespan,
            "predicted_seconds": plan.expected,
            "lower_bound": plan.lower_bound,
        }
        yield _row(cases[how], how, times, column, planned)
    yield _row(sliced, APART, times, len(plans), {})


def _row(case: Case, how: str, times: Turns, column: int, planned: Row) -> Row:
    low, high = np.quantile(times.ratios(0, column), (0.25, 0.75))
    return {
        "network": case.name,
        "plan": how,
        "slices": case.slices,
        **planned,
        "rounds": times.rounds,
        "seconds": times.seconds(column),
        "speed": times.ratio(0, column),
        "speed_low": float(low),
        "speed_high": float(high),
    }


def _targets(rows: list[Row]) -> Iterator[Target]:
    for row in rows:
        predicted, measured = row["predicted_seconds"], row["seconds"]
        where = f"{row['network']}, {row['plan']}"
        if row["plan"] == AUTO:
            yield Target(
                where,
                f"at least {LEAST:g} times as fast as one device",
                f"{row['speed']:.2f}",
                row["speed"] >= LEAST,
            )
        yield Target(
            f"{where}: predicted over measured seconds",
            f"within {NEAR:.0%}",
            f"{predicted / measured:.3f}",
            abs(predicted / measured - 1) <= NEAR,
        )


if __name__ == "__main__":
    main()
