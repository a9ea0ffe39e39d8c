"""`random`: the best of many placements and orders drawn uniformly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from situate.data.topology import op_devices
from situate.solvers.search import Candidate, Search

SAMPLES = 1000
"""Decisions drawn where no number of evaluations is given."""


def run(search: Search) -> None:
    """Draw until the budget ends."""
    for _ in draw(search, search.evaluation_limit or SAMPLES):
        if search.finished():
            return


def draw(search: Search, samples: int) -> Iterator[Candidate]:
    """Offer a device for every unit, among those it may run on, and an order of the ops, again and
    again; the same ones for the same seed."""
    problem = search.problem
    generator = np.random.default_rng(search.seed)
    choices = problem.allowed.sum(axis=1)
    # (units, d) devices of each unit, those it may run on first; an index below its number of
    # choices is then one of these.
    ranked = np.argsort(~problem.allowed, axis=1, kind="stable")
    for _ in range(samples):
        pick = generator.integers(choices)
        of_unit = ranked[np.arange(problem.units), pick]
        order = generator.permutation(problem.n).astype(np.int32)
        yield search.offer(op_devices(problem, of_unit), order, search.decoders[:1])
