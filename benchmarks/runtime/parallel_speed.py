"""The gain of two CPU devices of one thread each over one of them, with plans that `auto` makes
from measured costs; and whether it keeps to one where two are slower.

The steps on one and on two devices run in turn; a figure is the median of the rounds' ratios. For
the two branches and the small RNN a placement by hand shows the possible gain or loss.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import numpy as np
import torch

import situate
from benchmarks.lib.record import Row, Target, record
from benchmarks.runtime.runtime_cases import Case, Turns, cpus, in_turn, profiled
from situate.data.graph import Op
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode

LEAST = {"two_branches": 1.7, "inception_v3": 1.3}
"""Times as fast as one device."""

ONE_IS_BETTER = "small_rnn"

MOST_LOSS = 0.95
"""Least speed of a plan on one device, in speeds of that device; the rest may be noise."""

Rule = Callable[[Op], bool]
"""Which ops the second device gets."""

BY_HAND: dict[str, Rule] = {
    "two_branches": lambda op: op.module.startswith("right"),
    "small_rnn": lambda op: op.phase != "forward",
}


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*LEAST, ONE_IS_BETTER]
    parser.add_argument("--networks", nargs="+", choices=names, default=names)
    parser.add_argument("--seconds", type=float, default=90.0, help="of each network, about")
    parser.add_argument("--time-limit", type=float, default=10.0, help="of each plan, seconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = [row for name in options.networks for row in _rows(Case(name), options)]
    tables = {"two devices over one": rows}
    record("parallel_speed", tables, list(_targets(rows)), options=options)


def _rows(case: Case, options: argparse.Namespace) -> Iterator[Row]:
    problem = case.problem(*profiled(case, cpus(2)))
    single = situate.solve(problem, "single").schedule
    auto = situate.solve(problem, time_limit=options.time_limit, seed=options.seed).schedule
    plans = {"single": single, "auto": auto}
    if case.name in BY_HAND:
        plans["by hand"] = _by_hand(problem, BY_HAND[case.name])
    with ExitStack() as stack:
        steps = [stack.enter_context(case.placed(p, problem.cluster)) for p in plans.values()]
        times = in_turn([partial(step, *case.inputs) for step in steps], options.seconds)
    print(f"{case.name}, rounds: {times.rounds}", flush=True)
    for column, (name, plan) in enumerate(plans.items()):
        yield _row(case, name, plan, single, times, column)


def _by_hand(problem: Problem, rule: Rule) -> Schedule:
    """Colocated ops go where the first of them goes."""
    of_op = np.array([rule(op) for op in problem.graph.ops], np.int32)
    of_unit = np.zeros(problem.units, np.int32)
    of_unit[problem.unit[::-1]] = of_op[::-1]
    return decode(problem, of_unit[problem.unit], problem.depth_first, "eager")


def _row(case: Case, name: str, plan: Schedule, single: Schedule, times: Turns, column: int) -> Row:
    low, high = np.quantile(times.ratios(0, column), (0.25, 0.75))
    return {
        "network": case.name,
        "plan": name,
        "devices_used": len(np.unique(plan.placement)),
        "transfers": len(plan.tensor),
        "rounds": times.rounds,
        "seconds": times.seconds(column),
        "predicted_seconds": plan.makespan,
        "speed": times.ratio(0, column),
        "speed_low": float(low),
        "speed_high": float(high),
        "predicted_speed": single.makespan / plan.makespan,
    }


def _targets(rows: list[Row]) -> Iterator[Target]:
    for row in (row for row in rows if row["plan"] == "auto"):
        name, speed = row["network"], float(row["speed"])
        if name in LEAST:
            yield Target(
                f"{name}: auto's plan on two devices",
                f"at least {LEAST[name]:g} times as fast as one device",
                f"{speed:.2f}",
                speed >= LEAST[name],
            )
        else:
            used = row["devices_used"]
            (hand,) = (r for r in rows if r["network"] == name and r["plan"] == "by hand")
            yield Target(
                f"{name}: auto's plan, where two devices are slower",
                "on one device",
                f"on {used}, {speed:.2f} times as fast as one; by hand on two {hand['speed']:.2f}",
                used == 1 and speed >= MOST_LOSS,
            )


if __name__ == "__main__":
    main()
