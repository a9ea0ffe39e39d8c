"""`python -m benchmarks.layouts.seconds CELLS.csv [--record]`: step times, predicted and published.

The factors of a program's parts are fitted to published runs. Each run is predicted by factors of
runs of other models (`by model`), and of runs on other GPUs (`by GPU`).
"""

from __future__ import annotations

import argparse
import csv
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.layouts.cells import Cell, Unpriced, cell_of
from benchmarks.lib.record import Row as RecordRow
from benchmarks.lib.record import record
from situate.language.training.layout import LayoutTable
from situate.language.training.seconds import BUSY, raw_seconds
from situate.language.training.software import PARTS

Floats = NDArray[np.float64]

FACTORS = np.exp(np.linspace(-1.5, 1.5, 31))
"""Factors of a part that a fit tries."""

PENALTY = 1.0
"""Weight of |log factor| beside the mean |log error|, divided by the number of families.

A few families say little about others.
"""

ROUNDS = 4

GPU_PARTS = [PARTS.index(part) for part in BUSY]
LAUNCHES = PARTS.index("launches")
OTHER_PARTS = [i for i in range(len(PARTS)) if i != LAUNCHES and i not in GPU_PARTS]

GROUPS = {
    "megatron-2021": ("megatron-2021",),
    "megatron-2025": ("megatron-2025", "megatron-2025-all-to-all"),
    "megatron": ("megatron", "nemo", "nemo-all-to-all"),
    "torchtitan": ("torchtitan", "torchtitan-async", "torchtitan-eager"),
    "composer": ("composer",),
    "deepspeed": ("deepspeed", "torch"),
}
"""Programs that share factors, by the first of them."""

RANKED = 3
"""Fewest layouts of a model for a rank correlation."""

PEERS = (
    {"predictor": "AMP, equal T4s", "runs": 47, "median_error": 0.359, "spearman": 0.93},
    {"predictor": "AMP, T4 and V100", "runs": 43, "median_error": 0.203, "spearman": 0.40},
    {"predictor": "AMP, TransGAN", "runs": 19, "median_error": 0.108, "spearman": 0.85},
    {"predictor": "Aceso", "runs": 10, "median_error": 0.056, "spearman": 0.95},
    {"predictor": "Mist", "runs": 1, "median_error": 0.059, "spearman": None},
)
"""Others' predictions of their own measurements, from their repositories."""


@dataclass(frozen=True)
class Runs:
    """Published runs of one program.

    Attributes:
        cells: the runs.
        parts: (runs, parts) seconds by the formulas, with all launches of the host.
        seconds: (runs,) measured.
    """

    cells: list[Cell]
    parts: Floats
    seconds: Floats

    def of(self, mask: NDArray[np.bool_]) -> Runs:
        """The runs of a mask."""
        cells = [cell for cell, inside in zip(self.cells, mask, strict=True) if inside]
        return Runs(cells, self.parts[mask], self.seconds[mask])


def runs_of(cells: Sequence[Cell]) -> Runs:
    """The runs that have a time."""
    timed = [cell for cell in cells if cell.seconds is not None]
    parts = np.array([_parts(cell) for cell in timed])
    return Runs(timed, parts, np.array([float(cell.seconds or 0) for cell in timed]))


def _parts(cell: Cell) -> list[float]:
    table = LayoutTable.of([cell.run.layout])
    parts = raw_seconds(cell.model, cell.run, cell.machine, table)
    return [float(parts[part][0]) for part in PARTS]


def total(parts: Floats, factors: Floats) -> Floats:
    """(runs,) seconds of steps, as `situate.language.training.seconds.with_factors` adds them."""
    scaled = parts * factors
    busy = scaled[:, GPU_PARTS].sum(1)
    seconds: Floats = np.maximum(scaled[:, LAUNCHES], busy) + scaled[:, OTHER_PARTS].sum(1)
    return seconds


def fit(runs: Runs) -> Floats:
    """(parts,) factors that make the mean of |log| errors small; families weigh by their root.

    Coordinate descent: one factor after the other.
    """
    sizes = Counter(cell.family for cell in runs.cells)
    weights = np.array([sizes[cell.family] ** -0.5 for cell in runs.cells])
    weights /= weights.sum()
    penalty = PENALTY / len(sizes)
    factors = np.ones(len(PARTS))
    for _ in range(ROUNDS):
        for j in np.flatnonzero(runs.parts.any(axis=0)):
            losses = []
            for factor in FACTORS:
                factors[j] = factor
                error = np.abs(np.log(total(runs.parts, factors) / runs.seconds))
                losses.append(weights @ error + penalty * abs(np.log(factor)))
            factors[j] = FACTORS[np.argmin(losses)]
    return factors


def crossed(runs: Runs, group: Callable[[Cell], str]) -> Floats:
    """(runs,) predicted over measured seconds, by factors of all other groups.

    Args:
        runs: of one program.
        group: of a run, all of which one fit leaves out; a program with one group is predicted
            with factors of 1.
    """
    names = np.array([group(cell) for cell in runs.cells])
    ratio = np.empty(len(names))
    for name in set(names.tolist()):
        outside = names != name
        factors = fit(runs.of(outside)) if outside.any() else np.ones(len(PARTS))
        inside = ~outside
        ratio[inside] = total(runs.parts[inside], factors) / runs.seconds[inside]
    return ratio


def ranks(values: Floats) -> Floats:
    """Ranks from 0; equal values share the mean of theirs."""
    below = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    result: Floats = below + (equal - 1) / 2
    return result


def spearman(first: Floats, second: Floats) -> float:
    """Rank correlation of two arrays."""
    return float(np.corrcoef(ranks(first), ranks(second)).item(1))


def ranks_within_models(runs: Runs, ratio: Floats) -> list[float]:
    """Rank correlations of tokens/s of a GPU among the layouts of each model.

    Runs of one layout and precision by several versions of a program count once, by their medians.
    """
    speeds: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for cell, seconds, factor in zip(runs.cells, runs.seconds, ratio, strict=True):
        run, tokens = cell.run, cell.run.layout.batch * cell.run.sequence
        speed = tokens / run.layout.devices / float(seconds)
        key = f"{run.layout} {run.sequence} {run.recipe.precision} {run.recipe.software.name}"
        group = speeds.setdefault(cell.family, {}).setdefault(key, [])
        group.append((speed, speed / float(factor)))
    result = []
    for groups in speeds.values():
        medians = np.array([np.median(group, axis=0) for group in groups.values()])
        if len(medians) >= RANKED and (np.ptp(medians, axis=0) > 0).all():
            result.append(spearman(medians[:, 0], medians[:, 1]))
    return result


def summary(runs: Runs, ratio: Floats) -> RecordRow:
    """Medians and shares of one source."""
    error = np.abs(ratio - 1)
    within = ranks_within_models(runs, ratio)
    return {
        "runs": len(runs.cells),
        "families": len({cell.family for cell in runs.cells}),
        "median_error": float(np.median(error)),
        "p90_error": float(np.quantile(error, 0.9)),
        "median_ratio": float(np.median(ratio)),
        "spearman": spearman(runs.seconds, runs.seconds * ratio),
        "median_spearman_in_model": float(np.median(within)) if within else None,
    }


def cells_of(path: Path) -> tuple[list[Cell], Counter[str], str]:
    """The runs of a file, the reasons for which rows are left out, and the file's SHA-256."""
    data = path.read_bytes()
    cells, reasons = [], Counter[str]()
    for row in csv.DictReader(data.decode().splitlines()):
        try:
            cells.append(cell_of(row))
        except Unpriced as error:
            reasons[f"{row['source']}: {error}"] += 1
    return cells, reasons, hashlib.sha256(data).hexdigest()


def worst_rows(runs: Runs, ratio: Floats, count: int) -> list[RecordRow]:
    """The runs with the largest errors."""
    return [
        {
            "source": runs.cells[i].source,
            "run": runs.cells[i].family,
            "layout": str(runs.cells[i].run.layout),
            "precision": runs.cells[i].run.recipe.precision,
            "seconds": runs.seconds[i],
            "predicted": runs.seconds[i] * ratio[i],
        }
        for i in np.argsort(-np.abs(np.log(ratio)))[:count]
    ]


def cells_and_options(
    description: str | None,
) -> tuple[list[Cell], Counter[str], argparse.Namespace]:
    """The runs of the file that the command line names, the reasons for which rows are left out,
    and the options of a benchmark, with the file's SHA-256."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("cells", type=Path, metavar="CELLS.csv")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    cells, reasons, options.cells_sha256 = cells_of(options.cells)
    return cells, reasons, options


def publish(name: str, tables: dict[str, list[RecordRow]], options: argparse.Namespace) -> None:
    """Write the tables as a record with `--record`; otherwise print them."""
    if options.record:
        record(name, tables, options=options)
        return
    for title, rows in tables.items():
        print(title)
        for row in rows:
            print(*map(_short_text, row.values()))


def _short_text(value: object) -> str:
    """A value of a table with three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Print and record errors by source, and the factors."""
    cells, reasons, options = cells_and_options(__doc__)
    tables: dict[str, list[RecordRow]] = {"summary": [], "factors": [], "worst": []}
    for name, programs in GROUPS.items():
        inside = [
            cell
            for cell in cells
            if cell.run.recipe.software.name in programs and cell.source != "Megatron tests"
        ]
        if not any(cell.seconds for cell in inside):
            continue
        group = runs_of(inside)
        by_model = crossed(group, lambda cell: cell.family)
        by_gpu = crossed(group, lambda cell: cell.machine.name)
        factors = dict(zip(PARTS, fit(group).round(3).tolist(), strict=True))
        error = float(np.median(np.abs(by_model - 1)))
        tables["factors"].append({"software": name, "error": error, **factors})
        for source in sorted({cell.source for cell in group.cells}):
            mask = np.array([cell.source == source for cell in group.cells])
            for kind, ratio in (("by model", by_model), ("by GPU", by_gpu)):
                row = {"software": name, "source": source, "left_out": kind}
                tables["summary"].append(row | summary(group.of(mask), ratio[mask]))
        tables["worst"] += worst_rows(group, by_model, 5)
    tables["others"] = list(PEERS)
    tables["left out"] = [{"reason": text, "rows": rows} for text, rows in reasons.items()]
    publish("layout_seconds", tables, options)


if __name__ == "__main__":
    main()
