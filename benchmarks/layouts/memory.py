"""`python -m benchmarks.layouts.memory CELLS.csv [--record]`: peak memory, predicted and published.

No constant of memory is fitted to these runs, except for the workspace of libraries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.layouts.cells import Cell
from benchmarks.layouts.seconds import Floats, cells_and_options, publish
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


LEVELS = (0.9, 0.95, 0.99)
"""Shares of runs that stay below a margin."""


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


def is_resumed(cell: Cell) -> bool:
    """True if the run began from a checkpoint, so that its peak may be the loading of the file.

    Megatron-LM's tests that resume publish their second run in files of their own.
    """
    return "_2nd" in cell.row["path"]


def margin(ratio: Floats, level: float) -> float:
    """The factor on predicted bytes below which a share of new runs stays.

    It is the quantile of conformal prediction (Vovk et al., 2005): of n runs, the one of rank
    (n + 1) level.

    Args:
        ratio: (runs,) predicted over measured bytes.
        level: the share.
    """
    rank = min(int(np.ceil((len(ratio) + 1) * level)), len(ratio))
    return float(np.sort(1 / ratio)[rank - 1])


def margin_row(cells: Sequence[Cell], ratio: Floats, level: float) -> RecordRow:
    """A margin, and the shares of runs that stay below that of other models' runs."""
    families = np.array([cell.family for cell in cells])
    below = np.zeros(len(ratio), np.bool_)
    for family in set(families.tolist()):
        inside = families == family
        below[inside] = 1 / ratio[inside] <= margin(ratio[~inside], level)
    factor = margin(ratio, level)
    shares = [float(below[families == family].mean()) for family in set(families.tolist())]
    return {
        "level": level,
        "runs": len(ratio),
        "margin": factor,
        "below": float(below.mean()),
        "below_by_family": float(np.mean(shares)),
        "over_5_percent_too_low": float(np.mean(factor * ratio < 0.95)),
    }


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
    cells, reasons, options = cells_and_options(__doc__)
    cells = [cell for cell in cells if cell.gib is not None]
    ratio = np.array([predicted_gib(cell) / float(cell.gib or 1) for cell in cells])
    precise = np.array([cell.precise for cell in cells])
    rows: list[RecordRow] = []
    for source in sorted({cell.source for cell in cells}):
        mask = np.array([cell.source == source for cell in cells])
        for settings, kind in (("published", mask & precise), ("other", mask & ~precise)):
            if kind.any():
                rows.append({"source": source, "settings": settings, **summary(ratio[kind])})
    resumed = np.array([is_resumed(cell) for cell in cells])
    for settings, kind in (("resumed", resumed), ("not resumed", ~resumed)):
        rows.append({"source": "all", "settings": settings, **summary(ratio[kind])})
    rows.append({"source": "all", "settings": "all", **summary(ratio)})
    chosen = [cell for cell in cells if cell.precise]
    tables = {
        "summary": rows,
        "margin": [margin_row(chosen, ratio[precise], level) for level in LEVELS],
        "worst": worst_tests(cells, ratio, 12),
        "others": list(PEERS),
        "left out": [{"reason": text, "rows": count} for text, count in reasons.items()],
    }
    publish("layout_memory", tables, options)


if __name__ == "__main__":
    main()
