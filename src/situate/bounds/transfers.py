"""The least that transfers take."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Floats
from situate.data.problem import Problem


def least_transfers(problem: Problem) -> Floats:
    """(m,) seconds of a transfer of each tensor over the fastest link; signals occupy nothing."""
    between = ~np.eye(problem.d, dtype=bool)
    own = problem.transfer_seconds
    links = problem.latency[between] + problem.size[:, None] / problem.bandwidth[between]
    linked = np.where(problem.signal, 0.0, links.min(axis=1))
    return np.asarray(np.where(np.isnan(own), linked, own))
