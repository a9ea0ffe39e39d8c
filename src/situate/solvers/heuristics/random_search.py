"""`random`: the best of many placements and orders drawn uniformly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from situate.data.topology import op_devices
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search

SAMPLES = 1000
"""Number of random decisions if no number of evaluations is given."""


def run(search: Search) -> None:
    """Draw until the budget ends."""
    for _ in draw(search, search.budget.evaluation_limit or SAMPLES):
        if search.finished():
            return


def draw(search: Search, samples: int) -> Iterator[Candidate]:
    """Offer so many decisions with a random allowed device for every unit and a random order of
    the ops; equal seeds give equal decisions."""
    problem = search.problem
    generator = np.random.default_rng(search.seed)
    choices = problem.allowed.sum(axis=1)
    # (units, d) devices of each unit, allowed ones first, so that indices below its number of
    # choices are allowed devices.
    ranked = np.argsort(~problem.allowed, axis=1, kind="stable")
    for _ in range(samples):
        pick = generator.integers(choices)
        of_unit = ranked[np.arange(problem.units), pick]
        order = generator.permutation(problem.n).astype(np.int32)
        yield search.offer(op_devices(problem, of_unit), order, search.decoders[:1])
