"""Gaps of runs to the best known values, their means, and tables of them for the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.text import Text

from situate.bench.best_known import ROUNDED, BestKnown
from situate.bench.families import FAMILIES
from situate.bench.rows import Row
from situate.report.tables import name_cell, table
from situate.report.text import plural, printable

Label = TypeVar("Label", bound=Hashable)


# Gaps of rows to the best known and to the bound, and their means by method.
@dataclass(frozen=True)
class RowGap:
    """A row beside the known values of its problem.

    Attributes:
        gap: relative distance of its value above the best known; infinite for a plan that does not
            fit, and without a plan.
        bound_gap: the same to the largest bound; infinite where there is none, too.
    """

    row: Row
    gap: float
    bound_gap: float


@dataclass(frozen=True)
class Means:
    """The rows of a method.

    Attributes:
        method: its name.
        runs: their number; to `refused` of them the method did not apply.
        fit: number of runs with a plan that fits; the gaps are of these alone.
        reached: number of runs as good as the best known, to the rounding of printed values.
        mean, median, worst: gap to the best known, as a fraction; NaN where nothing fits.
        bound_mean: mean gap to the largest bound, where that is above zero.
        seconds: mean wall time.
    """

    method: str
    runs: int
    refused: int
    fit: int
    reached: int
    mean: float
    median: float
    worst: float
    bound_mean: float
    seconds: float


def row_gaps(rows: Iterable[Row], best_known: BestKnown) -> list[RowGap]:
    """Rows with their gaps."""
    return [_row_gap(row, best_known) for row in rows]


def _row_gap(row: Row, best_known: BestKnown) -> RowGap:
    entry = best_known.entries.get(row.problem)
    if entry is None or row.value is None or not row.feasible:
        return RowGap(row, math.inf, math.inf)
    best, bound = entry.best, entry.bound
    return RowGap(
        row,
        _gap(row.value, best.value if best else None),
        _gap(row.value, bound.value if bound else None),
    )


def _gap(value: float, reference: float | None) -> float:
    """The gap of a value to a reference; a value below it is so by rounding alone."""
    if reference is None:
        return math.inf
    if value <= reference:
        return 0.0
    return value / reference - 1 if reference > 0 else math.inf


def group_rows(rows: Iterable[RowGap], group: Callable[[Row], Label]) -> dict[Label, list[RowGap]]:
    """Rows by a common label, in the order of the first of each."""
    groups: dict[Label, list[RowGap]] = {}
    for row_gap in rows:
        groups.setdefault(group(row_gap.row), []).append(row_gap)
    return groups


def means(rows: Iterable[RowGap]) -> list[Means]:
    """One of each method, in the order of their rows."""
    return [_means(method, of) for method, of in group_rows(rows, lambda row: row.method).items()]


def _means(method: str, rows: Sequence[RowGap]) -> Means:
    fit = [row_gap for row_gap in rows if row_gap.row.feasible]
    gaps = [row_gap.gap for row_gap in fit]
    bound_gaps = [j.bound_gap for j in fit if math.isfinite(j.bound_gap)]
    return Means(
        method,
        runs=len(rows),
        refused=sum(bool(row_gap.row.refused) for row_gap in rows),
        fit=len(fit),
        reached=sum(gap <= ROUNDED for gap in gaps),
        mean=fmean(gaps) if gaps else math.nan,
        median=median(gaps) if gaps else math.nan,
        worst=max(gaps, default=math.nan),
        bound_mean=fmean(bound_gaps) if bound_gaps else math.nan,
        seconds=fmean(row_gap.row.seconds for row_gap in rows),
    )


# Tables of a benchmark for the terminal.
COLUMNS = "method|runs|fit|reach best|mean gap|median|worst|to the bound|seconds"


def families() -> RenderableType:
    """All families, and the number of their problems or their folder in `--data`."""
    grid = table("", "family|problems|what they are", (1,))
    for family in FAMILIES.values():
        count = f"{family.folder}/" if family.folder else str(len(family.instances()))
        grid.add_row(family.name, count, family.summary)
    return grid


def comparison(rows: Iterable[RowGap]) -> RenderableType:
    """For each family and time limit a row a method: gaps to the best known and to the bound."""
    groups = group_rows(rows, lambda row: (row.family, row.time_limit))
    parts: list[RenderableType] = []
    for (family, limit), of in groups.items():
        count = len({row_gap.row.problem for row_gap in of})
        grid = table("", COLUMNS, range(1, 9))
        for mean in means(of):
            grid.add_row(*_cells(mean))
        title = f"{printable(family)}: {plural(count, 'instance')}, {limit:g} s"
        parts += [Text(), Text(title, "bold"), grid]
    return Group(*parts[1:])


def _cells(mean: Means) -> list[RenderableType]:
    gaps = (mean.mean, mean.median, mean.worst, mean.bound_mean)
    runs = f"{mean.runs - mean.refused}" + (f" of {mean.runs}" if mean.refused else "")
    return [
        name_cell(mean.method),
        runs,
        str(mean.fit),
        str(mean.reached),
        *map(_gap_percent, gaps),
        f"{mean.seconds:.2f}",
    ]


def _gap_percent(gap: float) -> str:
    """A gap in per cent with the digits that tell small ones apart; `-` for NaN."""
    if math.isnan(gap):
        return "-"
    percent = 100 * gap
    return f"{percent:.3f} %" if percent < 1 else f"{percent:.4g} %"
