"""As many parts of the network as accelerators, each of units that exchange most bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.solvers.auto.rank_order import by_rank
from situate.solvers.line_cut import on_devices
from situate.solvers.search import Search


def offer_one_part_per_device(search: Search, label: NDArray[np.int64]) -> None:
    """Offer the plan of parts (units,), as an eager scheduler runs it in the graph's order or by
    rank, if it is better.

    Of an unrolled network a part is a layer at all its steps, as the papers' experts place it.
    """
    placement = one_part_each(search.problem, label)
    for order in (np.array(search.problem.graph.order, np.int32), by_rank(search)):
        search.consider(placement, order, "eager")


def one_part_each(problem: Problem, label: NDArray[np.int64]) -> Placement:
    """Placement (n,) of parts (units,), in the order of their first units, on an accelerator each;
    a unit that may not go there is on the first device that it may run on."""
    _, first, part = np.unique(label, return_index=True, return_inverse=True)
    devices = np.array(accelerators(problem))
    # (parts,) rank of each part by its first unit -> (units,) the device of its part.
    return on_devices(problem, devices[first.argsort().argsort()[part] % len(devices)])
