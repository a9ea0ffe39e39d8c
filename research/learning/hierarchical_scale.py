"""The Hierarchical Planner on a step of 80,000 ops: NMT with 8 layers, unrolled 166 times.

The step is captured once, which takes minutes, and kept in situate's cache. The timed part is the
whole search from there on: the learner, its samples, their evaluation, its updates, and the
schedules of the plans that were best for a while.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.record import Row, Target, record
from research import RESULTS
from situate import Cluster, Problem, solve
from situate.bounds.lower_bound import lower_bound
from situate.data.graph import Graph
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers.budget import Budget
from situate.solvers.learned import hierarchical
from situate.solvers.learned.driver import learn
from situate.solvers.learned.learner import Learner, Learning, Settings, State
from situate.solvers.search import Search
from situate.torch_capture import capture
from situate.torch_capture.cache import cached
from situate.torch_capture.function import versions
from situate.zoo import nmt

UPDATES = 1000
WANTED = 20.0
"""Minutes of CPU for `UPDATES`, on two cores."""

FIRST = 60
"""Samples whose best one learning has to improve on."""


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    options = _parser().parse_args(arguments)
    problem = Problem(graph(options.layers, options.steps), Cluster.preset(options.cluster))
    others = [_other(problem, method) for method in ("single", "expert")]
    rows = [_row(problem, settings, options) for settings in options.settings]
    record(
        "hierarchical_scale",
        {"searches": rows, "by hand": others},
        [_target(row, problem.n) for row in rows],
        options=options,
        folder=RESULTS,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=166, help="tokens of a sentence")
    parser.add_argument("--cluster", default="k40-8")
    parser.add_argument("--settings", nargs="+", default=["paper", "tuned"])
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def graph(layers: int, steps: int) -> Graph:
    """The training step of NMT, unrolled so many times."""
    name = f"nmt{layers}:{steps} steps"
    key = {"benchmark": name, "packages": versions("torch")}
    build = partial(nmt.build, layers, steps=steps)
    return cached(key, lambda: capture(build, optimizer="adam", name=name))


class Clock:
    """CPU seconds of this process, on all of its threads, by activity."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Within it seconds count as `what`."""
        begin = time.process_time()
        yield
        self.seconds[what] = self.seconds.get(what, 0.0) + time.process_time() - begin


class TimedMachine(SimulatedMachine):
    """The simulator, whose seconds count as `evaluate`."""

    def __init__(self, problem: Problem, clock: Clock) -> None:
        super().__init__(problem)
        self._clock = clock

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """As the simulator does."""
        with self._clock.on("evaluate"):
            return super().measure(placements, first)


class TimedLearner:
    """A learner whose seconds count as `ask` and `tell`."""

    def __init__(self, learner: Learner, clock: Clock) -> None:
        self._learner, self._clock = learner, clock
        self.batch = learner.batch

    def ask(self, k: int) -> NDArray[np.int32]:
        """As the learner does."""
        with self._clock.on("ask"):
            return self._learner.ask(k)

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """As the learner does."""
        with self._clock.on("tell"):
            self._learner.tell(placements, measurements)

    def state(self) -> State:
        """The learner's."""
        return self._learner.state()

    def restore(self, state: State) -> None:
        """The learner's."""
        self._learner.restore(state)


def _row(problem: Problem, settings: Settings, options: argparse.Namespace) -> Row:
    """One search of as many updates as were asked for."""
    clock, wall = Clock(), time.perf_counter()
    with clock.on("search"):
        learning = Learning(settings=settings, evaluator=TimedMachine(problem, clock))
        with clock.on("begin"):
            learner = hierarchical.learner(problem, learning, 0, options.seed)
        samples = learner.batch * options.updates
        bound = lower_bound(problem)
        budget = Budget(evaluation_limit=samples)
        search = Search(problem, bound, budget=budget, seed=options.seed)
        telemetry = learn(search, "hierarchical", lambda *_: TimedLearner(learner, clock), learning)
    seconds = np.concatenate([batch.seconds for batch in telemetry.measurements])
    wall = time.perf_counter() - wall
    figures = _figures(seconds, settings, options.updates, clock, wall)
    return {**figures, "lower_bound": search.lower_bound}


def _figures(
    seconds: NDArray[np.float64], settings: str, updates: int, clock: Clock, wall: float
) -> Row:
    seconds_per_update = {
        what: spent / updates for what, spent in clock.seconds.items() if what != "search"
    }
    total = clock.seconds["search"]
    first, best = float(seconds[:FIRST].min()), float(seconds.min())
    return {
        "settings": settings,
        "updates": updates,
        "samples": len(seconds),
        "cpu_minutes": total / 60,
        "wall_minutes": wall / 60,
        "begin_seconds": clock.seconds["begin"],
        "cpu_seconds_an_update": (total - clock.seconds["begin"]) / updates,
        "ask": seconds_per_update["ask"],
        "evaluate": seconds_per_update["evaluate"],
        "tell": seconds_per_update["tell"],
        "ran": float(np.isfinite(seconds).mean()),
        f"best_of_first_{FIRST}": first if np.isfinite(first) else None,
        "best": best if np.isfinite(best) else None,
    }


def _other(problem: Problem, method: str) -> Row:
    """The step of a placement by hand; None where it does not fit or there is none."""
    try:
        result = solve(problem, method)
    except SituateError:
        return {"method": method, "seconds": None}
    return {"method": method, "seconds": result.value if result.feasible else None}


def _target(row: Row, ops: int) -> Target:
    """The target of all updates. From fewer updates the time of `UPDATES` is extrapolated."""
    minutes = (row["begin_seconds"] + UPDATES * row["cpu_seconds_an_update"]) / 60
    how = "" if row["updates"] == UPDATES else f", extrapolated from {row['updates']}"
    return Target(
        f"{UPDATES:,} updates on {ops:,} ops, settings {row['settings']}",
        f"under {WANTED:g} minutes of CPU",
        f"{minutes:.1f} minutes{how}",
        minutes < WANTED,
    )


if __name__ == "__main__":
    main()
