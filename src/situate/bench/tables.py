"""Tables of a benchmark for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from situate.bench.families import FAMILIES
from situate.bench.summary import Means, RowGap, group_rows, means
from situate.report.tables import name_cell, table
from situate.report.text import plural, printable

COLUMNS = "method|runs|fit|reach best|mean gap|median|worst|to the bound|seconds"


def families() -> RenderableType:
    """All families and what is in them, or which folder of `--data` it comes from."""
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
