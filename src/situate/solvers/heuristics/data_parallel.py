"""`data_parallel`: every accelerator runs the whole model, on slices of the batch."""

from __future__ import annotations

import numpy as np

from situate.data.topology import accelerators
from situate.solvers.search import Search
from situate.solvers.slice_placement import (
    homes,
    offer_slices,
    shared_out,
    slice_of_units,
    slice_seconds,
)


def run(search: Search) -> None:
    """Slices in shares by speed; parameters where updates end earliest.

    Raises:
        SituateError: the step takes its batch whole.
    """
    problem = search.problem
    slices, devices = slice_of_units(problem), np.array(accelerators(problem))
    # (units, devices): what cannot run on a device is sent elsewhere, and takes no time there.
    seconds = np.where(np.isfinite(problem.unit_seconds), problem.unit_seconds, 0)[:, devices]
    of_slice = slice_seconds(slices, seconds)
    device = shared_out(of_slice)
    busy = np.zeros(len(devices))
    np.add.at(busy, device, of_slice[np.arange(len(device)), device])
    home = homes(problem, slices, devices, seconds, busy)
    offer_slices(search, slices, devices[device], home)
