"""One problem with its batch whole, and in slices."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from situate.bounds.load import least_load
from situate.bounds.paths import Paths
from situate.data.cost_lookup import estimated
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.slices import AutoSlices, Slices, shares_text
from situate.errors import SituateError
from situate.slicing.shares import WHOLE, Shares


class Cuts:
    """A problem, and the same step in slices, each captured on first use.

    Args:
        whole: the problem with the batch whole.
        options: how inputs are cut, and the loss.
        count: the samples of the batch; raises SituateError if it cannot be cut.
        capture: the graph of the step in slices; raises SituateError if it has none.

    Attributes:
        whole, options: the arguments.
        seconds: of the captures.
    """

    def __init__(
        self,
        whole: Problem,
        options: AutoSlices,
        count: Callable[[], int],
        capture: Callable[[Slices], Graph],
    ) -> None:
        self.whole = whole
        self.seconds = 0.0
        self.options = options
        self._count, self._capture = count, capture
        self._problems: dict[Shares, Problem | SituateError] = {WHOLE: whole}

    @cached_property
    def batch(self) -> int:
        """Samples of the batch.

        Raises:
            SituateError: it cannot be cut.
        """
        with self._timed():
            return self._count()

    def problem(self, shares: Shares) -> Problem:
        """The problem with its batch cut into `shares`.

        Raises:
            SituateError: the step cannot be captured in these slices, or lacks measured costs.
        """
        if shares not in self._problems:
            try:
                self._problems[shares] = self._sliced(shares)
            except SituateError as error:
                self._problems[shares] = error  # a failed capture is not tried again
        problem = self._problems[shares]
        if isinstance(problem, SituateError):
            raise problem
        return problem

    def least(self, shares: Shares) -> float:
        """Lower bound on the seconds of this cut's plans; 0 if there is none before its capture.

        By the roofline, an op on a part of the batch takes at least that part of its time. So the
        devices' least load stays the same, and the longest path shrinks at most to the largest
        slice's share.
        """
        if self.whole.objective != "time" or self.whole.transfers == "atomic" or self.whole.costs:
            return 0.0
        load, path = self._bounds
        return max(load, path * max(shares, default=1) / (sum(shares) or 1))

    @cached_property
    def _bounds(self) -> tuple[float, float]:
        return least_load(self.whole).seconds, Paths.of(self.whole).longest

    def _sliced(self, shares: Shares) -> Problem:
        slices = self.options.of(shares)
        with self._timed():
            graph = self._capture(slices)
        costs, devices = self.whole.costs, self.whole.cluster.devices
        if costs is not None and (missing := estimated(graph, devices, costs)):
            requested = _options(slices)
            raise SituateError(
                f"{missing[0]}: profile the step with --slices {requested} to have them tried"
            )
        return replace(self.whole, graph=graph)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - begin


def _options(slices: Slices) -> str:
    """The argument of `--slices`, with further options."""
    more = "" if slices.batch_norm == "slice" else f" --batch-norm {slices.batch_norm}"
    return f"{shares_text(slices.shares)}{more}"
