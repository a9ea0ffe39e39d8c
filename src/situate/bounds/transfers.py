"""The least that transfers take."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from situate.data.arrays import Floats
from situate.data.problem import Problem


def least_transfers(problem: Problem) -> Floats:
    """(m,) seconds of a transfer of each tensor over the fastest link; signals occupy nothing."""
    own, linked = problem.transfer_seconds, np.full(len(problem.size), np.inf)
    for latency, bandwidth in _fastest_links(problem):
        np.minimum(linked, latency + problem.size / bandwidth, out=linked)
    return np.asarray(np.where(np.isnan(own), np.where(problem.signal, 0.0, linked), own))


def _fastest_links(problem: Problem) -> Iterator[tuple[float, float]]:
    """(latency, bandwidth) of the Pareto-optimal links, the largest bandwidth first."""
    between = ~np.eye(problem.d, dtype=bool)
    latencies, bandwidths = problem.latency[between], problem.bandwidth[between]
    shortest = np.inf
    for link in np.lexsort((latencies, -bandwidths)):
        if latencies[link] < shortest:
            shortest = float(latencies[link])
            yield shortest, float(bandwidths[link])
