"""The planner by its paper's text and by its released code, on rows of its table.

A run learns if the mean of its last 60 samples is below that of its first 60; a sample that fails
counts as it does for the learner. An update measures four placements in the paper and one in the
release.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.lib.record import Row, rows_at_commit, show, write
from benchmarks.lib.workers import add_workers, jobs
from research import RESULTS
from research.papers.cases import Case, calibrated
from research.papers.planner.candidates import PRESETS, measure

CASES = tuple(
    Case(network, gpus, "k40")
    for network, gpus in (("inception_v3", 2), ("rnnlm", 2), ("nmt2", 2), ("nmt4", 4), ("nmt8", 8))
)
"""Rows of the planner's table whose network fits some placement."""

SAMPLES = 1000
"""The updates of both sources, of one placement each in the release."""

COLUMNS = ("case", "settings", "seed", "first_mean", "last_mean", "best", "failures", "seconds")


@dataclass(frozen=True)
class Trial:
    """A preset on a case with a seed, for so many samples."""

    preset: str
    case: Case
    seed: int
    samples: int

    @property
    def key(self) -> tuple[str, str, int]:
        """The key of a trial among those of the experiment."""
        return self.case.name, self.preset, self.seed


def row(trial: Trial) -> Row:
    """Run it on one thread."""
    measurements = measure(PRESETS[trial.preset], trial.case, trial.seed, trial.samples)
    case, preset, seed = trial.key
    return {
        "case": case,
        "settings": preset,
        "seed": seed,
        "samples": trial.samples,
        **measurements,
    }


def main(arguments: list[str] | None = None) -> None:
    """Learn, print and record; the runs of an interrupted invocation at the same commit stay."""
    options = _parser().parse_args(arguments)
    rows = {_key(row): row for row in rows_at_commit(options.out, "runs")}
    trials = [trial for trial in _trials(options) if trial.key not in rows]
    with jobs(options, row) as results:
        for _, result in results.each((trial,) for trial in trials):
            rows[_key(result)] = result
            print(", ".join(f"{name} {result[name]}" for name in COLUMNS), flush=True)
            write(options.out, {"runs": _sorted(list(rows.values()))}, options=options)
    show("runs", [{name: row[name] for name in COLUMNS} for row in _sorted(list(rows.values()))])


def _trials(options: argparse.Namespace) -> list[Trial]:
    return [
        Trial(preset, calibrated(case), seed, options.samples)
        for case in CASES
        if case.name in options.rows
        for seed in range(options.seeds)
        for preset in options.settings
    ]


def _key(row: Row) -> tuple[str, str, int]:
    return row["case"], row["settings"], row["seed"]


def _sorted(rows: Sequence[Row]) -> list[Row]:
    cases, presets = [case.name for case in CASES], list(PRESETS)
    return sorted(
        rows,
        key=lambda row: (cases.index(row["case"]), presets.index(row["settings"]), row["seed"]),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.name for case in CASES]
    parser.add_argument("--rows", nargs="+", choices=names, default=names, metavar="CASE")
    parser.add_argument("--settings", nargs="+", choices=PRESETS, default=list(PRESETS))
    parser.add_argument("--seeds", type=int, default=1, help="0, 1, ...; default: 1")
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"default: {SAMPLES}")
    add_workers(parser, 2, "runs")
    out = RESULTS / "planner_presets.json"
    parser.add_argument("--out", type=Path, default=out, metavar="FILE")
    return parser


if __name__ == "__main__":
    main()
