"""The step of `tests.solvers.slices` with a batch of eight samples, a second an op and sample."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from situate.data.cluster import Cluster
from situate.data.graph import Graph
from situate.data.problem import Objective, Problem
from situate.data.slices import AutoSlices, Slices
from situate.slicing.cuts import Cuts
from tests.solvers.families import devices
from tests.solvers.slices import sliced

BATCH = 8


@dataclass
class Captured:
    """Captures that record their requests.

    Attributes:
        launch: seconds that every op takes beside.
    """

    launch: float = 0.0
    requests: list[tuple[int, ...]] = field(default_factory=list)

    def __call__(self, slices: Slices) -> Graph:
        self.requests.append(slices.shares)
        graph = sliced(*(self.launch + samples for samples in slices.shares))
        return replace(graph, slices=slices)

    def cuts(
        self, cluster: Cluster | None = None, objective: Objective = "time", batch: int = BATCH
    ) -> Cuts:
        """The step on two equal devices, or on others."""
        graph = sliced(self.launch + batch)
        whole = Problem(graph, cluster or devices(1, 1, bandwidth=1e3), objective)
        return Cuts(whole, AutoSlices(), lambda: batch, self)
