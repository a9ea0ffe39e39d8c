"""The evidence that a few seeds give on which method is ahead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

from research.papers import markdown
from research.papers.tables import Results

LIKELY = 0.05
"""Probability from which on a lead is put down to chance."""


def sure(results: Results, cases: Mapping[str, str], method: str, others: Sequence[str]) -> str:
    """The cases, by title, on which a method's lead on each of the others, all in `tuned` settings,
    is more than chance."""
    leads = {
        title: all(_leads(results, case, method, other) for other in others)
        for title, case in cases.items()
    }
    return markdown.of_rows([title for title, won in leads.items() if won], list(cases))


def behind(results: Results, cases: Mapping[str, str], method: str, others: Sequence[str]) -> str:
    """The cases, by title, on which the lead of one of the others on a method is more than
    chance."""
    lags = {
        title: any(_leads(results, case, other, method) for other in others)
        for title, case in cases.items()
    }
    return markdown.of_rows([title for title, lost in lags.items() if lost], list(cases))


def _leads(results: Results, case: str, method: str, other: str) -> bool:
    return chance(_best(results, case, method), _best(results, case, other)) < LIKELY


def _best(results: Results, case: str, method: str) -> list[float]:
    result = [run["best"] for run in results.of(case, method, "tuned")]
    return [math.inf if seconds is None else float(seconds) for seconds in result]


def chance(own: Sequence[float], others: Sequence[float]) -> float:
    """The fraction of all ways to deal the seconds of two methods out to them that make the first's
    mean as small (one-sided permutation test, R. A. Fisher, *The Design of Experiments*, 1935)."""
    pooled = [*own, *others]
    sums = [math.fsum(dealt) for dealt in combinations(pooled, len(own))]
    least = math.fsum(own) * (1 + 1e-12)
    return sum(dealt <= least for dealt in sums) / len(sums)
