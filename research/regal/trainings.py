"""Curves of trainings, and whether they had more to gain: of every weights file of a folder.

A reward in validation is the improvement over BRKGA with as many evaluations, less one. A training
is over after all steps of its settings, or once its curve is flat. It is flat if the second half of
its last third is no better than the first by more than the interval of their difference. The
interval is Welch's, of the rewards at the points of each half. Rewards beside one another depend on
one another, so the interval is too narrow: a curve that counts as flat is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.record import Row, show, write
from research import RESULTS, TRAININGS
from research.regal.data import trained
from situate.solvers.evolutionary.regal.weights import read

Z = 1.96
"""Standard deviations of half an interval of 95 %."""

SHOWN = ("weights", "steps", "of", "kept", "best_%", "gain_%", "gain_interval_%", "flat")
"""Columns that are printed."""

LEAST_POINTS = 12
"""Points of the shortest curve that is tested."""


def main(arguments: list[str] | None = None) -> None:
    """Record regal_trainings.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=TRAININGS, help="of weights files")
    options = parser.parse_args(arguments)
    paths = sorted(options.folder.glob("*.safetensors"))
    tables = {"trainings": [training(path) for path in paths], "curves": curves(paths)}
    show("trainings", [{name: row[name] for name in SHOWN} for row in tables["trainings"]])
    write(RESULTS / "regal_trainings.json", tables, options=options)


def training(path: Path) -> Row:
    """The row of a training: its weights, its steps, its best point and the test of its end."""
    row = trained(path.stem, path)
    _, about = read(path)
    improvements = validated(about.curve)
    gain, half = rise(improvements)
    return {
        **row,
        "best_%": float(improvements.max()) if improvements.size else None,
        "gain_%": gain,
        "gain_interval_%": half,
        "flat": gain is not None and half is not None and gain <= half,
    }


def curves(paths: Sequence[Path]) -> list[Row]:
    """By training and point: the steps, and the improvement in validation in percent."""
    rows = list[Row]()
    for path in paths:
        _, about = read(path)
        rows += [
            {"training": path.stem, "steps": steps, "improvement_%": 100 * (1 + reward)}
            for steps, _, reward in about.curve
            if reward is not None
        ]
    return rows


def validated(curve: Sequence[tuple[int, float, float | None]]) -> NDArray[np.float64]:
    """Improvements in validation of a curve, in percent, by point."""
    return np.array([100 * (1 + reward) for _, _, reward in curve if reward is not None])


def rise(improvements: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """How much better the second half of the last third is than the first, and half its interval.

    None and None for fewer than twelve points.
    """
    if improvements.size < LEAST_POINTS:
        return None, None
    first, second = np.array_split(improvements[-(improvements.size // 3) :], 2)
    variance = first.var(ddof=1) / first.size + second.var(ddof=1) / second.size
    return float(second.mean() - first.mean()), Z * sqrt(variance)


if __name__ == "__main__":
    main()
