"""Runs of methods on cases, by several workers at once, and the record of each."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.record import Row
from benchmarks.lib.workers import jobs
from research.papers.cases import Case
from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.results.result import Result
from situate.solvers import LEARNERS, solve
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.rewards import failure_seconds

OnMeasured = Callable[[int, Measurements], None]

BATCH = 60
"""Samples that one point of a learning curve stands for, and "the first" and "the last" ones."""

DIGITS = 5
"""Significant ones that curves keep."""

LEARNING = {
    "tuned": Learning(),
    "bytes": Learning(grouping="bytes"),
    "heavy-edge": Learning(grouping="heavy-edge"),
    "paper": Learning(settings="paper"),
    "paper, prefix": Learning(settings="paper", grouping="prefix"),
    "paper, colocation": Learning(settings="paper", grouping="colocation"),
}
"""Settings of learners by their name in records. `bytes` and `heavy-edge` are `tuned` with groups
by these rules; the last two have the groups of another paper."""


@dataclass(frozen=True)
class Run:
    """One method on one case with one seed; `settings` are of a method that learns, a name of
    `LEARNING`."""

    case: Case
    method: str
    settings: str
    seed: int
    samples: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The key of a run among those of one experiment."""
        return self.case.name, self.method, self.settings, self.seed

    def result(self, on_measured: OnMeasured | None = None) -> Result:
        """The method's result, on one thread; for `on_measured` see `Learning`."""
        learning = replace(LEARNING[self.settings], on_measured=on_measured)
        return solve(
            self.case.problem(),
            self.method,
            evaluations=self.samples,
            seed=self.seed,
            threads=1,
            learning=learning if self.method in LEARNERS else None,
        )


def row(run: Run) -> Row:
    """Run it. Seconds of a step are None where nothing fitted; a failing sample counts in means as
    it does for the learner."""
    begin = time.perf_counter()
    result = run.result()
    return {
        "case": run.case.name,
        "method": run.method,
        "settings": run.settings,
        "seed": run.seed,
        "samples": run.samples,
        "best": result.value if result.feasible else None,
        **(learnt(result.samples, result.problem) if len(result.samples) else {}),
        "seconds": round(time.perf_counter() - begin, 2),
    }


def learnt(samples: NDArray[np.float64], problem: Problem) -> Row:
    """Figures and curves of the samples, in the order in which they were measured."""
    counted = np.where(np.isfinite(samples), samples, failure_seconds(problem))
    ends = range(BATCH, len(samples), BATCH)
    means = [part.mean() for part in np.split(counted, ends)]
    bests = np.minimum.accumulate(samples)[[*(end - 1 for end in ends), -1]]
    return {
        "first_best": _rounded([samples[:BATCH].min()])[0],
        "last_mean": float(counted[-BATCH:].mean()),
        "mean": float(counted.mean()),
        "failures": int(np.isinf(samples).sum()),
        "mean_curve": _rounded(means),
        "best_curve": _rounded(bests),
    }


def _rounded(values: Sequence[float] | NDArray[np.float64]) -> list[float | None]:
    return [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values]


def by_workers(
    runs: Sequence[Run], options: argparse.Namespace, measure: Callable[[Run], Row] = row
) -> Iterator[Row]:
    """Measure them where `--workers` says, the rows as they come; one computes with one thread."""
    with jobs(options, measure) as measured:
        for number, (_, row) in enumerate(measured.each((run,) for run in runs), start=1):
            print(f"{number} of {len(runs)}: {_progress(row)}", flush=True)
            yield row


def _progress(row: Row) -> str:
    best = "nothing fits" if row["best"] is None else f"best {row['best']:.4g} s"
    what = f"{row['case']}, {row['method']} ({row['settings']}), seed {row['seed']}"
    return f"{what}: {best}, took {row['seconds']:.1f} s"
