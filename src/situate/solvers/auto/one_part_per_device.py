"""One part of the network per accelerator, with few bytes between parts."""

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
    """Offer a plan from the parts (units,) of units, in the graph's order and by rank, if it is
    better under an eager scheduler.

    In an unrolled network a part is a layer at all its steps, as in the papers' expert placements.
    """
    placement = one_part_each(search.problem, label)
    for order in (np.array(search.problem.graph.order, np.int32), by_rank(search)):
        search.consider(placement, order, "eager")


def one_part_each(problem: Problem, label: NDArray[np.int64]) -> Placement:
    """Placement (n,) with one part (units,) per accelerator, in the order of their first units; a
    unit that may not run there goes to its first allowed device."""
    _, first, part = np.unique(label, return_index=True, return_inverse=True)
    devices = np.array(accelerators(problem))
    # (parts,) rank of each part by its first unit -> (units,) the device of its part.
    return on_devices(problem, devices[first.argsort().argsort()[part] % len(devices)])
