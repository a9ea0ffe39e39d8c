"""Parts: as many pieces of the network as accelerators, with what exchanges most together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.decoding import priority_of
from situate.problem import Problem
from situate.solvers.auto.slices import best
from situate.solvers.expert import accelerators
from situate.solvers.search import Placement, Search


def offer_parts(search: Search, label: NDArray[np.int64]) -> None:
    """Offer the plan of parts (units,) if an eager scheduler is done with it before the best plan.

    Of an unrolled network a part is a layer at all its steps, as the papers' experts place it.
    """
    problem = search.problem
    placement, order = one_each(problem, label), np.array(problem.graph.order, np.int32)
    seconds, peak = search.simulator.evaluate(placement[None], priority_of(order)[None])
    search.evaluations += 1
    excess = int(np.maximum(0, peak[0] - problem.capacity).sum())
    if (excess, float(seconds[0])) < best(search).score:
        search.offer(placement, order)


def one_each(problem: Problem, label: NDArray[np.int64]) -> Placement:
    """Placement (n,) of parts (units,), in the order of their first units, on an accelerator each;
    a unit that may not go there is on the first device that it may run on."""
    _, first, part = np.unique(label, return_index=True, return_inverse=True)
    devices = np.array(accelerators(problem))
    of_unit = devices[first.argsort().argsort()[part] % len(devices)]
    stuck = ~problem.allowed[np.arange(problem.units), of_unit]
    of_unit[stuck] = problem.allowed[stuck].argmax(axis=1)
    return np.asarray(of_unit[problem.unit], np.int32)
