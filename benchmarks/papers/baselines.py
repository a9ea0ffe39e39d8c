"""Two baselines that learn nothing, on the terms of tuned Post: groups, samples, machine, order."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.runs import Run
from benchmarks.record import Row
from situate.evaluators.simulated import SimulatedMachine
from situate.grouping import group
from situate.solvers.post import TUNED

Allowed = NDArray[np.bool_]
"""(g, d) the devices that each group may run on, at least one."""

Devices = NDArray[np.int32]
"""(k, g) the devices of groups in k placements."""

Measure = Callable[[Devices], NDArray[np.float64]]
"""Seconds (k,) of placements; infinite where one fails."""

BATCH = 12
"""Placements that are measured before the next are chosen: Post's K."""

MOST_CHANGED = 3
"""A neighbour draws the devices of one to so many groups anew."""


def row(run: Run) -> Row:
    """Run a method of `METHODS`; seconds of a step are None where nothing fitted."""
    begin = time.perf_counter()
    problem = run.case.problem()
    groups = group(problem, TUNED.grouping, TUNED.groups)
    machine = SimulatedMachine(problem, threads=1)
    best = METHODS[run.method](
        groups.allowed,
        lambda devices: machine.measure(groups.expand(devices), 0).seconds,
        run.samples,
        np.random.default_rng(run.seed),
    )
    return {
        **key(run),
        "settings": run.settings,
        "samples": run.samples,
        "best": best if math.isfinite(best) else None,
        "seconds": round(time.perf_counter() - begin, 2),
    }


def key(run: Run) -> Row:
    """What tells the runs of both tables apart."""
    return {
        "machine": run.case.machine,
        "case": run.case.name,
        "method": run.method,
        "seed": run.seed,
    }


def uniform(
    allowed: Allowed, measure: Measure, samples: int, generator: np.random.Generator
) -> float:
    """The least seconds of placements that draw every group's device evenly."""
    return min(float(measure(drawn(allowed, k, generator)).min()) for k in batches(samples))


def hill_climbing(
    allowed: Allowed, measure: Measure, samples: int, generator: np.random.Generator
) -> float:
    """From the best of the first batch to the best of a batch of neighbours, where it is faster.

    The first batch is tuned Post's: everything on one device, each device once, then even draws.
    Batches are drawn until a placement fits.
    """
    best, least = np.empty(0, np.int32), math.inf
    for number, k in enumerate(batches(samples)):
        if math.isfinite(least):
            tried = neighbours(best, allowed, k, generator)
        else:
            tried = drawn(allowed, k, generator)
        if number == 0:
            _put_on_one_device(tried, allowed)
        seconds = measure(tried)
        fastest = int(seconds.argmin())
        if seconds[fastest] < least:
            best, least = tried[fastest], float(seconds[fastest])
    return least


METHODS = {"uniform": uniform, "hill_climbing": hill_climbing}


def batches(samples: int) -> Iterator[int]:
    """How many placements each batch has."""
    return (min(BATCH, samples - done) for done in range(0, samples, BATCH))


def drawn(allowed: Allowed, k: int, generator: np.random.Generator) -> Devices:
    """(k, g) of every group one of its devices, drawn evenly."""
    ranked = np.argsort(~allowed, axis=1, kind="stable")
    pick = generator.integers(allowed.sum(axis=1), size=(k, len(allowed)))
    return ranked[np.arange(len(allowed)), pick].astype(np.int32)


def neighbours(
    devices: NDArray[np.int32], allowed: Allowed, k: int, generator: np.random.Generator
) -> Devices:
    """(k, g) placements that differ from devices (g,) in `MOST_CHANGED` groups at most."""
    count = generator.integers(1, MOST_CHANGED + 1, size=(k, 1))
    order = generator.random((k, len(devices))).argsort(axis=1).argsort(axis=1)
    return np.where(order < count, drawn(allowed, k, generator), devices).astype(np.int32)


def _put_on_one_device(placements: Devices, allowed: Allowed) -> None:
    """All groups that may run there on the first device, then on the second, and so on."""
    for device, placement in zip(range(allowed.shape[1]), placements, strict=False):
        placement[allowed[:, device]] = device
