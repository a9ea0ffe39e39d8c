"""Progress of a search while it runs, and its learning curve in the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.report.learning_curve import WINDOW, Curve
from situate.report.text import plural
from situate.report.units import value_text
from situate.results.result import Progress

BLOCKS = "▁▂▃▄▅▆▇█"
NOTHING = "·"
SPARKLINE_WIDTH = 24
"""Characters of a sparkline at most."""


class SearchProgress:
    """Follows one search.

    Args:
        problem, method: what is searched, and how.
        samples: that the search will measure, for a method that learns; else None.

    Attributes:
        figures: the last of `Progress.figures`.
    """

    def __init__(self, problem: Problem, method: str, samples: int | None = None) -> None:
        self.problem = problem
        self.method = method
        self.samples = samples
        self._batches: list[Floats] = []
        self._recent = np.empty(0)
        self._means: list[float] = []
        self._failed = 0
        self._best = np.inf
        self._looked_at = 0
        self.figures: dict[str, float] = {}
        self._improvements: list[tuple[int, float]] = []

    def measured(self, first: int, measurements: Measurements) -> None:
        """Count what was measured."""
        seconds = measurements.seconds
        self._batches.append(seconds)
        self._recent = np.concatenate((self._recent, seconds))[-WINDOW:]
        ran = self._recent[np.isfinite(self._recent)]
        self._means.append(float(ran.mean()) if ran.size else np.nan)
        self._failed += int((~measurements.ok).sum())
        self._best = min(self._best, float(seconds.min()))

    def update(self, progress: Progress) -> str:
        """Count an improvement; one line that says how far the search is."""
        self._looked_at, self.figures = progress.evaluations, progress.figures
        best = self._improvements[-1][1] if self._improvements else np.inf
        if progress.feasible and progress.value < best:
            self._improvements.append((progress.evaluations, progress.value))
        said = (self._learning if self.samples else self._searching)(progress)
        return f"{self.method}: {said}, {progress.seconds:.0f} s; Ctrl-C keeps it"

    def curve(self) -> Curve:
        """The learning curve of the search."""
        if self._batches:
            return Curve.of_samples(self.method, np.concatenate(self._batches))
        return Curve.of_improvements(self.method, self._looked_at, self._improvements)

    def _searching(self, progress: Progress) -> str:
        state = self._bound(progress) or ", does not fit yet"
        return f"best {self._text(progress.value)}{state}, {progress.evaluations:,} evaluations"

    def _bound(self, progress: Progress) -> str:
        """The lower bound of plans that fit, once there is one."""
        return f", bound {self._text(progress.lower_bound)}" if progress.feasible else ""

    def _learning(self, progress: Progress) -> str:
        done = sum(map(len, self._batches))
        mean = self._means[-1] if self._means else np.nan
        failed = f", {self._failed:,} failed" if self._failed else ""
        return (
            f"{done:,} of {self.samples:,} samples, best {self._text(self._best)}"
            f"{self._bound(progress)}, mean of the last {WINDOW} {self._text(mean)} "
            f"{sparkline(self._means)}{failed}{_workers(progress)}{_controllers(progress)}"
        )

    def _text(self, value: float) -> str:
        return value_text(value, self.problem.objective, self.problem.graph.unit)


def _workers(progress: Progress) -> str:
    """The workers, where there are some."""
    workers = progress.workers
    if workers is None:
        return ""
    failures = f" ({plural(workers.failures, 'failure')})" if workers.failures else ""
    busy = f"{workers.busy} of {plural(workers.count, 'worker')} busy"
    return f", {busy}{failures}, {progress.samples_per_second:.3g} samples/s"


def _controllers(progress: Progress) -> str:
    """The staleness of several controllers, where there are some."""
    asynchrony = progress.asynchrony
    if asynchrony is None:
        return ""
    return f", gradients {asynchrony.mean_staleness:.1f} updates old"


def sparkline(values: Sequence[float], width: int = SPARKLINE_WIDTH) -> str:
    """Values as a row of at most `width` blocks from the lowest to the highest; a dot where there
    is none."""
    at = np.linspace(0, len(values) - 1, min(width, len(values))).astype(int)
    shown = np.array(values, np.float64)[at]
    finite = shown[np.isfinite(shown)]
    low, span = finite.min(initial=np.inf), np.ptp(finite) if finite.size else 0.0
    return "".join(_block((value - low) / (span or 1.0)) for value in shown)


def _block(height: float) -> str:
    return BLOCKS[round(height * (len(BLOCKS) - 1))] if np.isfinite(height) else NOTHING
