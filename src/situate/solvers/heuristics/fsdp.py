"""`fsdp`: as many slices on every accelerator, and an equal share of the parameters' bytes."""

from __future__ import annotations

import numpy as np

from situate.data.topology import accelerators
from situate.solvers.search import Search
from situate.solvers.slice_placement import (
    homes,
    offer_slices,
    shared_out,
    slice_of_units,
)


def run(search: Search) -> None:
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
