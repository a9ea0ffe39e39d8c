"""Piper's experiments with BERT-32, beside the values of Piper's own program.

    .venv/bin/python -m benchmarks.sharding.piper DATA

DATA has Piper's files in its folder `piper`, as for `situate bench piper --data DATA`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.lib.record import Row, Target, record
from benchmarks.sharding.rows import rows
from situate.bench.families.piper import PUBLISHED, TIME_LIMIT, instance_name
from situate.bench.rows import Row as BenchRow

BY_NAME = {instance_name(*setting): figures for setting, figures in PUBLISHED.items()}
PRINTED = 1e-9
"""Relative rounding of Piper's values, which have ten digits."""


def figures(row: BenchRow, processor_seconds: float) -> Row:
    """The plan of an instance beside Piper's."""
    reference = BY_NAME[row.instance]
    gap = row.value and row.lower_bound and 100 * (1 - row.lower_bound / row.value)
    return {
        "instance": row.instance,
        "equal stages, s": reference.equal,
        "Piper, s": reference.piper,
        "situate, s": row.value,
        "over Piper, %": row.value and reference.piper and 100 * (row.value / reference.piper - 1),
        "bound, s": row.lower_bound,
        "gap, %": gap,
        "Piper's seconds": reference.planning,
        "trials": row.evaluations,
        "seconds": round(row.seconds, 3),
        "processor seconds": round(processor_seconds, 3),
    }


def targets(table: Sequence[Row]) -> list[Target]:
    """The figures asked of the solver."""
    no_worse = sum(
        row["situate, s"] is None
        if row["Piper, s"] is None
        else row["situate, s"] is not None and row["over Piper, %"] <= 100 * PRINTED
        for row in table
    )
    slowest = max(row["seconds"] for row in table)
    proved = sum(row["gap, %"] is None or row["gap, %"] < 1e-6 for row in table)
    count = f"of {len(table)}"
    return [
        Target("equal or better", "all", f"{no_worse} {count}", no_worse == len(table)),
        Target("seconds of each", f"{TIME_LIMIT:g}", f"{slowest:g}", slowest <= TIME_LIMIT),
        Target("proved to 8 digits", "all", f"{proved} {count}", proved == len(table)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    options = parser.parse_args()
    runs = rows("piper", options.data, 1.0, seed=0, threads=1)
    table = [figures(row, seconds) for row, seconds in runs]
    record("piper", {"instances": table}, targets(table), options=options)


if __name__ == "__main__":
    main()
