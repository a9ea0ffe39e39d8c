"""A learner's search by a virtual clock: its best step, and hours."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.lib.record import Row
from research.papers.cases import Case
from research.papers.clocks.batches import ends, until_best
from research.papers.runs import LEARNING, learnt
from situate.evaluators.measurements import Measurements
from situate.solvers import solve
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock


@dataclass(frozen=True)
class Search:
    """A learner on a case.

    Attributes:
        settings: a name of `LEARNING`.
        workers: of each controller.
        controllers: that learn asynchronously; 0 for one that waits for all of its workers.
    """

    case: Case
    method: str
    settings: str
    seed: int
    samples: int
    workers: int
    controllers: int = 0


def row(search: Search) -> Row:
    """Run it on one thread; hours are those of the virtual clock, without set-ups."""
    begin = time.perf_counter()
    batches: list[Measurements] = []
    clock = VirtualClock(search.workers)
    learning = replace(
        LEARNING[search.settings], on_measured=lambda _, batch: batches.append(batch)
    )
    if search.controllers:
        learning = replace(learning, controllers=search.controllers, clock=clock)
    result = solve(
        search.case.problem(),
        search.method,
        evaluations=search.samples,
        seed=search.seed,
        threads=1,
        learning=learning,
    )
    samples, late = result.samples, result.asynchrony
    figures = learnt(samples, result.problem)
    fits = bool(np.isfinite(samples).any())
    return {
        "machine": search.case.machine,
        "case": search.case.name,
        "method": search.method,
        "settings": search.settings,
        "controllers": search.controllers,
        "workers": search.workers,
        "seed": search.seed,
        "samples": len(samples),
        "best": float(samples.min()) if fits else None,
        "first_mean": figures["mean_curve"][0],
        "last_mean": figures["last_mean"],
        "failures": figures["failures"],
        "hours": float(ends(batches, clock)[-1]) if late is None else late.seconds / 3600,
        "best_hours": until_best(samples, batches, clock) if late is None else None,
        "staleness": 0.0 if late is None else late.mean_staleness,
        "took": round(time.perf_counter() - begin, 1),
    }
