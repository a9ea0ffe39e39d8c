"""Asynchronous controllers beside one that waits, by the virtual clock, on workers whose speeds
differ four times."""

from __future__ import annotations

import argparse
from statistics import median

import numpy as np
from numpy.typing import NDArray

import situate
from benchmarks.lib.record import Row, Target, record
from research import RESULTS
from situate.evaluators.measurements import Measurements
from situate.results.result import Result
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock, hours
from situate.solvers.learned.learner import Learning

METHODS = ("colocrl", "hierarchical")
CONTROLLERS, WORKERS = 4, 4
SLOWNESS = tuple(np.geomspace(1, 4, CONTROLLERS * WORKERS).tolist())
WANTED = 0.7
"""Time until the synchronous search's best step, as a fraction of all its time."""

MORE_SAMPLES = 1.8
"""Samples of the asynchronous search, which wait for nobody, over those of the synchronous one in
about the same time."""


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="inception_v3")
    parser.add_argument("--cluster", default="k80-4")
    parser.add_argument("--samples", type=int, default=1920)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    problem = situate.Problem(
        situate.zoo.load(options.model), situate.Cluster.preset(options.cluster)
    )
    rows = [
        _pair(problem, method, options.samples, seed)
        for method in METHODS
        for seed in range(options.seeds)
    ]
    targets = [_target(method, rows) for method in METHODS]
    tables = {"asynchronous and synchronous": rows}
    record("asynchronous", tables, targets, options=options, folder=RESULTS)


def _pair(problem: situate.Problem, method: str, samples: int, seed: int) -> Row:
    """One search that waits for all sixteen workers, one of four controllers with four each."""
    waiting = _learn(problem, method, samples, seed)
    together = VirtualClock(CONTROLLERS * WORKERS, slowness=SLOWNESS)
    synchronous = hours(together, _rounds(waiting.samples))
    clock = VirtualClock(WORKERS, slowness=SLOWNESS)
    more = int(samples * MORE_SAMPLES)
    sharing = _learn(problem, method, more, seed, controllers=CONTROLLERS, clock=clock)
    assert sharing.asynchrony is not None
    reached = np.flatnonzero(sharing.samples <= waiting.samples.min())
    share = reached[0] / len(sharing.samples) if len(reached) else np.inf
    staleness = sharing.asynchrony.staleness
    return {
        "method": method,
        "seed": seed,
        "synchronous_h": synchronous[-1],
        "synchronous_best_s": waiting.samples.min(),
        "asynchronous_h": sharing.asynchrony.seconds / 3600,
        "asynchronous_best_s": sharing.samples.min(),
        "staleness": sum(late * n for late, n in staleness.items()) / sum(staleness.values()),
        "as_good_after": share * sharing.asynchrony.seconds / 3600 / synchronous[-1],
    }


def _rounds(samples: NDArray[np.float64]) -> list[Measurements]:
    """Samples (s,), infinite where they failed, one for each worker at a time."""
    size = CONTROLLERS * WORKERS
    return [
        Measurements(part, np.where(np.isfinite(part), 0, 1).astype(np.uint8))
        for part in np.split(samples, range(size, len(samples), size))
    ]


def _learn(
    problem: situate.Problem, method: str, samples: int, seed: int, **learning: object
) -> Result:
    return situate.solve(
        problem,
        method,
        evaluations=samples,
        seed=seed,
        learning=Learning(**learning),  # type: ignore[arg-type]
    )


def _target(method: str, rows: list[Row]) -> Target:
    result = median(row["as_good_after"] for row in rows if row["method"] == method)
    what = f"{method}: the synchronous search's best step, of its time (median)"
    return Target(what, f"{WANTED:g}", f"{result:.2f}", result <= WANTED)


if __name__ == "__main__":
    main()
