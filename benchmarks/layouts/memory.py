"""`python -m benchmarks.layouts.memory CELLS.csv [--record]`: peak memory, predicted and published.

No constant of memory is fitted to these runs, except for the workspace of libraries.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.layouts.cells import Cell
from benchmarks.layouts.seconds import Floats, cells_of, publish
from benchmarks.lib.record import Row as RecordRow
from situate.language.training.layout import LayoutTable
from situate.language.training.memory import last_rank, peak_memory, stage_memory

PEERS = (
    {"predictor": "Aceso", "runs": 10, "median_error": 0.076},
    {"predictor": "ART's planner", "runs": 6, "median_error": 0.105},
    {"predictor": "Mist", "runs": 1, "median_error": 0.012},
    {"predictor": "DeepSpeed's estimator", "runs": 1, "median_error": 0.977},
)
"""Others' predictions of published memory, from their repositories and issues."""


def predicted_gib(cell: Cell) -> float:
    """GiB of a run's GPU, in the figure that its source publishes."""
    table = LayoutTable.of([cell.run.layout])
    memory = (
        stage_memory(cell.model, cell.run, table, last_rank(table))
        if cell.last_stage
        else peak_memory(cell.model, cell.run, table)
    )
    size = memory.reserved if cell.reserved else memory.allocated
    return float(size[0]) / 2**30


def summary(ratio: Floats) -> RecordRow:
    """Errors of predicted over measured memory."""
    error = np.abs(ratio - 1)
    return {
        "runs": len(ratio),
        "median_error": float(np.median(error)),
        "within_5_percent": float(np.mean(error <= 0.05)),
        "within_10_percent": float(np.mean(error <= 0.1)),
        "over_5_percent_too_low": float(np.mean(ratio < 0.95)),
        "median_ratio": float(np.median(ratio)),
    }


def worst_tests(cells: Sequence[Cell], ratio: Floats, count: int) -> list[RecordRow]:
    """The runs with the largest errors, one of each family."""
    rows: dict[str, RecordRow] = {}
    for i in np.argsort(-np.abs(np.log(ratio))):
        cell = cells[i]
        rows.setdefault(
            cell.family,
            {
                "source": cell.source,
                "run": cell.family,
                "layout": str(cell.run.layout),
                "gib": cell.gib,
                "predicted": float((cell.gib or 0) * ratio[i]),
            },
        )
    return list(rows.values())[:count]


def main() -> None:
    """Print and record errors by source, and the worst runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", type=Path, metavar="CELLS.csv")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    cells, reasons, options.cells_sha256 = cells_of(options.cells)
    cells = [cell for cell in cells if cell.gib is not None]
    ratio = np.array([predicted_gib(cell) / float(cell.gib or 1) for cell in cells])
    precise = np.array([cell.precise for cell in cells])
    rows: list[RecordRow] = []
    for source in sorted({cell.source for cell in cells}):
        mask = np.array([cell.source == source for cell in cells])
        for settings, kind in (("published", mask & precise), ("other", mask & ~precise)):
            if kind.any():
                rows.append({"source": source, "settings": settings, **summary(ratio[kind])})
    rows.append({"source": "all", "settings": "all", **summary(ratio)})
    tables = {
        "summary": rows,
        "worst": worst_tests(cells, ratio, 12),
        "others": list(PEERS),
        "left out": [{"reason": text, "rows": count} for text, count in reasons.items()],
    }
    publish("layout_memory", tables, options)


if __name__ == "__main__":
    main()
