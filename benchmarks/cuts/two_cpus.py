"""The gain of two CPU devices of one thread each over one of them by cutting ops in two.

    .venv/bin/python -m benchmarks.cuts.two_cpus

The step of whole ops on one device and the step in parts on two run in turn; a figure is the median
of the rounds' ratios. Both plans are made from measured costs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import torch

import situate
from benchmarks.lib.record import Row, Target, record
from benchmarks.runtime.runtime_cases import Case, cpus, in_turn, profiled

CASES = {
    "perceptron": (Case("perceptron"), Case("perceptron", cuts=("features=2",))),
    "perceptron, inference": (
        Case("perceptron", training=False),
        Case("perceptron", training=False, cuts=("features=2",)),
    ),
    "gpt2": (
        Case("gpt2"),
        Case("gpt2", cuts=("heads=2", "features=2", "vocabulary=2", "sequence=2")),
    ),
}

GOAL, CLOSE = 1.7, 0.1
"""Times as fast as one device, and the largest error of the predicted gain."""


def rows(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """The step of whole ops on one device, and that in parts on two."""
    whole, parts = CASES[name]
    problem = whole.problem(*profiled(whole, cpus(2)))
    cut = parts.problem(*profiled(parts, cpus(2)))
    single = situate.solve(problem, "single").schedule
    plan = situate.solve(cut, time_limit=options.time_limit, seed=options.seed).schedule
    with ExitStack() as stack:
        steps = [
            stack.enter_context(case.placed(schedule, own.cluster))
            for case, own, schedule in ((whole, problem, single), (parts, cut, plan))
        ]
        calls = [
            partial(step, *case.inputs) for step, case in zip(steps, (whole, parts), strict=True)
        ]
        times = in_turn(calls, options.seconds)
    predicted, speed = single.makespan / plan.makespan, times.ratio(0, 1)
    yield {
        "network": name,
        "rounds": times.rounds,
        "one device, s": times.seconds(0),
        "two devices, s": times.seconds(1),
        "speed": speed,
        "predicted speed": predicted,
        "error, %": 100 * (predicted / speed - 1),
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seconds", type=float, default=30.0, help="of each network, about")
    parser.add_argument("--time-limit", type=float, default=10.0, help="of each plan, seconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measured = [row for name in options.networks for row in rows(name, options)]
    targets = []
    for row in measured:
        speed, error = row["speed"], row["error, %"]
        name = f"{row['network']}: two devices over one"
        targets.append(Target(name, f"{GOAL:g}", f"{speed:.2f}", speed >= GOAL))
        close = abs(error) <= 100 * CLOSE
        targets.append(Target(f"{name}, predicted", "within 10 %", f"{error:.0f} %", close))
    record("cuts_two_cpus", {"two devices over one": measured}, targets, options=options)


if __name__ == "__main__":
    main()
