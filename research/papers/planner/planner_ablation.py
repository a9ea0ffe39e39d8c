"""Which published setting of the planner keeps it from learning: each changed alone, and some
together.

A run learns if the mean of its last 60 samples is below that of its first 60; a sample that fails
counts as it does for the learner. The paper's 1,000 updates are 4,000 samples; with fewer, noise
lasts and the learning rate stays. The defaults take a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.lib.record import Row, Target, show, write
from benchmarks.lib.workers import add_workers, jobs
from research import RESULTS
from research.papers.cases import Case, calibrated
from research.papers.planner.candidates import (
    CANDIDATES,
    NAMES,
    PUBLISHED,
    Candidate,
    Trial,
    falls,
    row,
)

CASES = (Case("rnnlm", 2, "k40"), Case("nmt2", 2, "k40"), Case("nmt4", 4, "k40"))
"""Rows of the planner's table whose first placements fit."""

SAMPLES = 800
COLUMNS = ("case", "candidate", "seed", "first_mean", "last_mean", "best", "failures", "seconds")


def main(arguments: list[str] | None = None) -> None:
    """Learn, print and record."""
    options = _parser().parse_args(arguments)
    trials = [
        Trial(candidate, calibrated(case), seed, options.samples)
        for case in CASES
        if case.name in options.rows
        for candidate in CANDIDATES
        for seed in range(options.seeds)
    ]
    result = sorted(_runs(trials, options), key=lambda run: (run["case"], *_place(run)))
    show("runs", [{name: run[name] for name in COLUMNS} for run in result])
    reached = targets(result)
    show("targets", [vars(target) for target in reached])
    tables = {"settings": [_setting(candidate) for candidate in CANDIDATES], "runs": result}
    write(options.out, tables, reached, options=options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.name for case in CASES]
    parser.add_argument("--rows", nargs="+", choices=names, default=names, metavar="CASE")
    parser.add_argument("--seeds", type=int, default=1, help="0, 1, ...; default: 1")
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"default: {SAMPLES}")
    add_workers(parser, 2, "runs")
    out = RESULTS / "planner_ablation.json"
    parser.add_argument("--out", type=Path, default=out, metavar="FILE")
    return parser


def _runs(trials: Sequence[Trial], options: argparse.Namespace) -> Iterator[Row]:
    with jobs(options, row) as measured:
        for number, (_, outcome) in enumerate(measured.each((trial,) for trial in trials), start=1):
            figures = ", ".join(f"{name} {outcome[name]}" for name in COLUMNS)
            print(f"{number} of {len(trials)}: {figures}", flush=True)
            yield outcome


def _place(run: Row) -> tuple[int, int]:
    return NAMES.index(run["candidate"]), run["seed"]


def _setting(candidate: Candidate) -> Row:
    return {
        "candidate": candidate.name,
        "published": candidate.published,
        "source": candidate.source,
    }


def targets(runs: Sequence[Row]) -> list[Target]:
    """That the mean falls as published, on every row."""
    return [
        Target(
            f"{case}, {PUBLISHED}: mean of the last 60 samples below that of the first 60",
            "every seed",
            f"{sum(map(falls, own))} of {len(own)}",
            all(map(falls, own)),
        )
        for case in dict.fromkeys(run["case"] for run in runs)
        for own in [[r for r in runs if r["case"] == case and r["candidate"] == PUBLISHED]]
    ]


if __name__ == "__main__":
    main()
