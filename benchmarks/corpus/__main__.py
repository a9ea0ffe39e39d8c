"""Models of transformers, torchvision, timm, peft and diffusers, small and with random weights, for
inference and training each: captured or refused, planned for two devices that are too small each,
exported to accelerate, and placed at random on two CPU devices.

Packages that are not installed are named and left out. Rows are written as they are made; at the
same clean commit the run goes on where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks.corpus import limits, listed, totals
from benchmarks.corpus.configuration import Configuration
from benchmarks.corpus.measure import Subject, measure
from benchmarks.lib.record import RESULTS, Row, rows_at_commit, show, write

TABLE = "configurations"
COLUMNS: Row = {
    "parameters": None,
    "ops": None,
    "capture_seconds": None,
    "outcome": None,
    "values_of": "",
    "message": "",
    "names_line": None,
    "names_remedy": None,
    "remedied": None,
    "remedy": "",
    "plan_fits": None,
    "plan_message": "",
    "map": None,
    "map_step_over_plan": None,
    "map_message": "",
    "verify": None,
    "verify_message": "",
    "largest_difference": None,
    "apart": "",
}
"""Columns beside name, package, kind and phase, with their values where nothing is known."""


def main(arguments: list[str] | None = None) -> None:
    """Try them, print and record."""
    options = _options(arguments)
    torch.set_num_threads(1)
    result = [c for c in listed.configurations() if not options.only or c.name in options.only]
    absent = listed.missing(result)
    listed.load(result, absent)
    subjects = [
        Subject(c, phase == "training", autocast)
        for c in result
        for phase in options.phases
        for autocast in ([False, True] if options.autocast else [False])
    ]
    rows = [] if options.only else rows_at_commit(options.out, TABLE)
    there = {(row["name"], row["phase"]) for row in rows}
    for subject in subjects:
        key = subject.configuration.name, subject.phase
        if subject.configuration.package not in absent and key not in there:
            rows.append(_row(subject, options))
            print(_line(rows[-1]), flush=True)
            _write(rows, result, absent, options)
    _write(rows, result, absent, options)
    show("corpus: by kind", totals.kinds(rows))
    show("corpus: targets", [asdict(target) for target in totals.targets(rows)])


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="configurations, all by default")
    phases = ["inference", "training"]
    parser.add_argument("--phases", nargs="+", choices=phases, default=phases)
    parser.add_argument("--autocast", action="store_true", help="each in mixed precision as well")
    parser.add_argument("--placements", type=int, default=1, help="random ones, compared by steps")
    parser.add_argument("--skip-verify", action="store_true", help="compare no placements")
    parser.add_argument("--limit-seconds", type=float, default=300.0, help="of a row")
    parser.add_argument("--limit-gib", type=float, default=16.0, help="address space of a row")
    parser.add_argument("--out", type=Path, default=RESULTS / "corpus.json")
    return parser.parse_args(arguments)


def _row(subject: Subject, options: argparse.Namespace) -> Row:
    seeds = 0 if options.skip_verify else options.placements

    def work(tell: Any) -> None:
        measure(subject, tell, seeds)

    outcome = limits.within(work, options.limit_seconds, int(options.limit_gib * 2**30))
    configuration = subject.configuration
    return {
        "name": configuration.name,
        "package": configuration.package,
        "kind": configuration.kind,
        "phase": subject.phase,
        **COLUMNS,
        **outcome,
    }


def _line(row: Row) -> str:
    rest = (row["map"], row["verify"], row["message"] or row["verify_message"])
    return f"{row['name']}, {row['phase']}: {row['outcome']}" + "".join(
        f", {part}" for part in rest if part
    )


def _write(
    rows: Sequence[Row],
    configurations: Sequence[Configuration],
    absent: Sequence[str],
    options: argparse.Namespace,
) -> None:
    missing = [
        {"name": configuration.name, "package": configuration.package}
        for configuration in configurations
        if configuration.package in absent
    ]
    tables = {"by kind": totals.kinds(rows), "not tried": missing, TABLE: rows}
    write(options.out, tables, totals.targets(rows), options=options)


if __name__ == "__main__":
    main()
