"""`python -m benchmarks.homes.speed CELLS.csv [--record]`: tokens/s as predicted and as published.

Predictions of a rig use factors of the parts of a pass that are fitted to all other rigs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.homes.cells import read_cells
from benchmarks.homes.speed_cells import Floats, Speed, speeds
from benchmarks.lib.record import Row as RecordRow
from benchmarks.lib.record import record
from situate.language.speed import PARTS

FACTORS = np.exp(np.linspace(-1.2, 1.2, 25))
"""Factors of a part that a fit tries."""

NEAR_BEST = 0.95
"""Share of the best measured speed from which on a configuration counts as the best."""


def fit(cells: Sequence[Speed]) -> Floats:
    """(parts,) factors that make the sum of |log| errors small; each rig weighs the same.

    Coordinate descent: one factor after the other, with a small weight on factors near 1.
    """
    parts = np.array([cell.parts for cell in cells])
    measured = np.array([cell.measured for cell in cells])
    names = [cell.rig for cell in cells]
    weights = np.array([1 / np.sqrt(names.count(name)) for name in names])
    factors = np.ones(len(PARTS))
    for _ in range(4):
        for j in range(len(PARTS)):
            rest = parts @ factors - parts[:, j] * factors[j]
            sums = rest[:, None] + parts[:, j, None] * FACTORS
            losses = weights @ np.abs(np.log(sums / measured[:, None]))
            factors[j] = FACTORS[np.argmin(losses + 0.15 * np.abs(np.log(FACTORS)))]
    return factors


def ratios(cells: Sequence[Speed]) -> tuple[Floats, Floats]:
    """(cells,) predicted over measured tokens/s: by the table alone, and cross-validated."""
    measured = np.array([cell.measured for cell in cells])
    parts = np.array([cell.parts for cell in cells])
    table = measured / parts.sum(1)
    crossed = np.empty(len(cells))
    for rig in {cell.rig for cell in cells}:
        factors = fit([cell for cell in cells if cell.rig != rig])
        for i, cell in enumerate(cells):
            if cell.rig == rig:
                crossed[i] = cell.measured / (cell.parts @ factors)
    return table, crossed


def errors(ratio: Floats) -> Floats:
    """Relative errors of tokens/s."""
    return np.abs(ratio - 1)


def rank_correlations(cells: Sequence[Speed], ratio: Floats) -> list[float]:
    """Spearman's coefficient of each rig with three speeds or more."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, cell in enumerate(cells):
        groups[cell.rig, cell.row["source"]].append(i)
    result = []
    for members in groups.values():
        speed = np.array([1 / cells[i].measured for i in members])
        if len(set(speed)) >= 3:
            ranks = [_ranks(values) for values in (speed, speed * ratio[members])]
            result.append(float(np.corrcoef(ranks[0], ranks[1]).item(1)))
    return result


def _ranks(values: Floats) -> Floats:
    """Ranks from 0; values that differ by rounding alone share the mean of theirs."""
    rounded = np.array([float(f"{value:.9e}") for value in values])
    below = (rounded[:, None] > rounded).sum(axis=1)
    equal = (rounded[:, None] == rounded).sum(axis=1)
    ranks: Floats = below + (equal - 1) / 2
    return ranks


def best_configurations(cells: Sequence[Speed], ratio: Floats) -> list[float]:
    """Speed of the configuration that the prediction calls best, over that of the best one.

    One figure for each rig, model and measurement with three configurations or more. A
    configuration is a layout with its settings, file type and engine; the fastest run counts. Of
    equal predictions the slowest run counts.
    """
    groups: dict[tuple[str, ...], dict[tuple[str, ...], tuple[float, float]]] = defaultdict(dict)
    for cell, share in zip(cells, ratio, strict=True):
        row, speed = cell.row, 1 / cell.measured
        setting = (
            *(row[field] for field in ("quant", "n_ctx", "ubatch", "cache_type", "flags")),
            cell.layout,
            "ik_llama" if "ik_llama" in row["notes"] else "llama",
        )
        group = groups[cell.rig, row["model"], row["measured_kind"]]
        group[setting] = max(group.get(setting, (0.0, 0.0)), (speed, speed * float(share)))
    results = []
    for group in groups.values():
        if len(group) >= 3:
            choice = max(group.values(), key=lambda pair: (float(f"{pair[1]:.9e}"), -pair[0]))
            results.append(choice[0] / max(speed for speed, _ in group.values()))
    return results


def summary(cells: Sequence[Speed], ratio: Floats) -> dict[str, float]:
    """Medians and shares of one phase."""
    error = errors(ratio)
    best = best_configurations(cells, ratio)
    return {
        "rows": len(cells),
        "rigs": len({cell.rig for cell in cells}),
        "median_error": float(np.median(error)),
        "within_30_percent": float(np.mean(error <= 0.3)),
        "median_ratio": float(np.median(ratio)),
        "median_spearman": float(np.median(rank_correlations(cells, ratio))),
        "choices": len(best),
        "best_named": sum(share >= NEAR_BEST for share in best),
        "worst_choice": min(best, default=1.0),
    }


def main() -> None:
    """Print and record errors by phase, and the worst rows."""
    options, measurements = read_cells(__doc__)
    every = speeds(measurements)
    tables: dict[str, list[RecordRow]] = {"summary": []}
    for phase in ("decode", "prefill"):
        cells = [cell for cell in every if cell.phase == phase]
        table, crossed = ratios(cells)
        factors = dict(zip(PARTS, fit(cells).round(3).tolist(), strict=True))
        print(phase, factors)
        for name, ratio in (("table", table), ("cross-validated", crossed)):
            result = summary(cells, ratio)
            tables["summary"].append({"phase": phase, "constants": name, **result})
            print(f"{phase:8}{name:16}", *(f"{k} {v:.3g}" for k, v in result.items()))
        for i in np.argsort(-np.abs(np.log(crossed)))[:15]:
            cell = cells[i]
            print(
                f"  {crossed[i]:6.2f} {1 / cell.measured:8.2f} t/s at {cell.depth}: "
                f"{cell.row['model']}, {cell.rig}, {cell.row['source']}"
            )
    if options.record:
        record("home_speed", tables, options=options)


if __name__ == "__main__":
    main()
