"""The cost of learners beside the evaluations: seconds of CPU in `ask` and `tell`.

The softmax methods on 20,529 ops (nmt2), by the evaluations' CPU time; the sequence models on 256
groups, in updates a second, on all CPUs: one over the median of an update's seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from statistics import median

import situate
from benchmarks.lib.record import Row, Target, record
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers import METHODS
from situate.solvers.learned.learner import Learner, Learning, Settings

SOFTMAX = ("policy_gradient", "ppo", "cross_entropy", "post")
SEQUENCE = ("spotlight", "colocrl", "hierarchical")
MOST = 0.10
LEAST_UPDATES = 5.0


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=600, help="of each softmax method")
    parser.add_argument("--updates", type=int, default=40, help="of each sequence model")
    options = parser.parse_args(arguments)
    softmax, sequence = list(_softmax(options.samples)), list(_sequence(options.updates))
    tables = {"softmax, nmt2 on k80-2": softmax, "sequence models, nmt2 on k80-2": sequence}
    record("learner_cost", tables, list(_targets(softmax, sequence)), options=options)


def _softmax(samples: int) -> Iterator[Row]:
    problem = situate.Problem(situate.zoo.load("nmt2"), situate.Cluster.preset("k80-2"))
    for method in SOFTMAX:
        for settings in ("tuned", "paper"):
            learner = _learner(method, problem, settings, samples)
            learning, evaluating = _cpu(problem, learner, samples)
            yield {
                "method": method,
                "settings": settings,
                "learning_s": learning,
                "evaluating_s": evaluating,
                "share": learning / evaluating,
            }


def _sequence(updates: int) -> Iterator[Row]:
    problem = situate.Problem(situate.zoo.load("nmt2"), situate.Cluster.preset("k80-2"))
    for method in SEQUENCE:
        for settings in ("tuned", "paper"):
            grouping = None if method == "hierarchical" else "heavy-edge"
            learner = _learner(method, problem, settings, 10_000, grouping, 256)
            seconds = list(_updates(problem, learner, updates))
            yield {
                "method": method,
                "settings": settings,
                "samples_an_update": learner.batch,
                "updates_a_second": 1 / median(seconds),
            }


def _updates(problem: situate.Problem, learner: Learner, updates: int) -> Iterator[float]:
    """Seconds of `ask` and `tell` in each of them."""
    machine = SimulatedMachine(problem)
    for update in range(updates):
        begin = time.perf_counter()
        placements = learner.ask(learner.batch)
        proposed = time.perf_counter()
        measurements = machine.measure(placements, update * learner.batch)
        measured = time.perf_counter()
        learner.tell(placements, measurements)
        yield proposed - begin + time.perf_counter() - measured


def _learner(
    method: str,
    problem: situate.Problem,
    settings: Settings,
    samples: int,
    grouping: str | None = None,
    groups: int | None = None,
) -> Learner:
    make: Callable[..., Learner] = METHODS[method].learner()
    return make(problem, Learning(settings, grouping=grouping, groups=groups), samples, 0)


def _cpu(problem: situate.Problem, learner: Learner, samples: int) -> tuple[float, float]:
    """CPU seconds of the learner and of the evaluations, on one thread."""
    machine, learning, evaluating, count = SimulatedMachine(problem, threads=1), 0.0, 0.0, 0
    while count < samples:
        begin = time.thread_time()
        placements = learner.ask(learner.batch)
        proposed = time.thread_time()
        measurements = machine.measure(placements, count)
        measured = time.thread_time()
        learner.tell(placements, measurements)
        learning += proposed - begin + time.thread_time() - measured
        evaluating += measured - proposed
        count += len(placements)
    return learning, evaluating


def _targets(softmax: list[Row], sequence: list[Row]) -> Iterator[Target]:
    for row in softmax:
        share = float(row["share"])
        yield Target(
            f"{row['method']} ({row['settings']}): learning over evaluating",
            f"under {MOST:.0%}",
            f"{share:.1%}",
            share < MOST,
        )
    for row in sequence:
        rate = float(row["updates_a_second"])
        yield Target(
            f"{row['method']} ({row['settings']}): updates a second on 256 groups",
            f"at least {LEAST_UPDATES:g}",
            f"{rate:.1f}",
            rate >= LEAST_UPDATES,
        )


if __name__ == "__main__":
    main()
