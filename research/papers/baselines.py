"""Baselines without a policy: draws and hill climbing on the learners' terms, and `auto`, which
looks at as many plans as they measure but knows the costs and chooses the order."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import situate
from benchmarks.lib.record import Row
from research.papers import runs
from research.papers.runs import Run
from situate.evaluators.simulated import SimulatedMachine
from situate.grouping import group

METHODS = ("uniform", "hill_climbing", "auto")

DRAWN = 96
"""Groups that uniform draws place; with more, a draw is nearer to the average of all."""

Allowed = NDArray[np.bool_]
"""(g, d) the devices that each group may run on, at least one."""

Devices = NDArray[np.int32]
"""(k, g) the devices of groups in k placements."""

Measure = Callable[[Devices], NDArray[np.float64]]
"""Seconds (k,) of placements; infinite where one fails."""

BATCH = 12
"""Placements that are measured at once: Post's K."""

RECORDED = ("settings", "samples", "best", "seconds")
"""Fields of a method's run that are recorded."""


def row(run: Run) -> Row:
    """Run one of `METHODS`; seconds of a step are None where nothing fitted."""
    if run.method in situate.METHODS:
        result = runs.row(run)
        return {**key(run), **{what: result[what] for what in RECORDED}}
    begin = time.perf_counter()
    best = _uniform_on(run)
    return {
        **key(run),
        "settings": run.settings,
        "samples": run.samples,
        "best": best if math.isfinite(best) else None,
        "seconds": round(time.perf_counter() - begin, 2),
    }


def key(run: Run) -> Row:
    """The key of a run in both tables."""
    return {
        "machine": run.case.machine,
        "case": run.case.name,
        "method": run.method,
        "seed": run.seed,
    }


def _uniform_on(run: Run) -> float:
    problem = run.case.problem()
    groups = group(problem, "structure", DRAWN)
    machine = SimulatedMachine(problem, threads=1)
    return uniform(
        groups.allowed,
        lambda devices: machine.measure(groups.expand(devices), 0).seconds,
        run.samples,
        np.random.default_rng(run.seed),
    )


def uniform(
    allowed: Allowed, measure: Measure, samples: int, generator: np.random.Generator
) -> float:
    """The least seconds of placements that draw every group's device evenly."""
    return min(float(measure(drawn(allowed, k, generator)).min()) for k in batches(samples))


def batches(samples: int) -> Iterator[int]:
    """The number of placements in each batch."""
    return (min(BATCH, samples - first) for first in range(0, samples, BATCH))


def drawn(allowed: Allowed, k: int, generator: np.random.Generator) -> Devices:
    """(k, g) of every group one of its devices, drawn evenly."""
    ranked = np.argsort(~allowed, axis=1, kind="stable")
    pick = generator.integers(allowed.sum(axis=1), size=(k, len(allowed)))
    return ranked[np.arange(len(allowed)), pick].astype(np.int32)
