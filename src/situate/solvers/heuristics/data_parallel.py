"""`data_parallel` and `fsdp`: every accelerator runs the whole model, on slices of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.solvers.search import Search
from situate.solvers.slice_placement import (
    homes,
    offer_slices,
    replica_seconds,
    shared_out,
    slice_of_units,
    slice_seconds,
)


def data_parallel(search: Search) -> None:
    """Share slices, or replicas with their slices, by speed; put each unreplicated parameter where
    its update ends earliest.

    Raises:
        SituateError: the step does not slice its batch.
    """
    offer_on(search, accelerators(search.problem))


def offer_on(search: Search, among: Sequence[int]) -> None:
    """Offer the plans of data parallelism on these devices.

    Raises:
        SituateError: the step does not slice its batch.
    """
    problem = search.problem
    slices, devices = slice_of_units(problem), np.array(among)
    # (units, devices): a unit that cannot run on a device takes no time there; it goes elsewhere.
    seconds = np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0)[:, devices]
    of_slice = slice_seconds(slices, seconds)
    for device in _assignments(problem, of_slice):
        busy = np.zeros(len(devices))
        # `add.at` adds for repeated devices too, which `busy[device] +=` would add once.
        np.add.at(busy, device, of_slice[np.arange(len(device)), device])
        home = homes(problem, slices, device, devices, seconds, busy)
        offer_slices(search, slices, devices[device], home)


def _assignments(problem: Problem, of_slice: NDArray[np.float64]) -> Iterator[Ints]:
    """(slices,) the device of each slice, with slices apart; with replicas, also with the slices of
    each replica together."""
    cut, apart = problem.graph.slices, shared_out(of_slice)
    yield apart
    if cut is not None and cut.replicas:
        together = shared_out(replica_seconds(cut, of_slice))[np.array(cut.replica)]
        if not np.array_equal(together, apart):
            yield together


def fsdp(search: Search) -> None:
    """Give every accelerator an equal share of the slices and of the persistent bytes.

    Raises:
        SituateError: the step does not slice its batch.
    """
    problem = search.problem
    slices, devices = slice_of_units(problem), np.array(accelerators(problem))
    device = shared_out(np.ones((int(slices.max()) + 1, len(devices))))
    persistent = np.repeat(
        problem.unit_persistent.astype(np.float64)[:, None], len(devices), axis=1
    )
    home = homes(problem, slices, device, devices, persistent, np.zeros(len(devices)))
    offer_slices(search, slices, devices[device], home)
