"""Instances of the ASPLOS 2025 contest on sharding, beside the best published costs and bounds.

    .venv/bin/python -m benchmarks.sharding.iopddl DATA [--share 1]

DATA has the instances in its folder `iopddl`, as for `situate bench iopddl --data DATA`. Every
instance gets its limit of the contest times --share.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.lib.record import Row, Target, record
from benchmarks.sharding.rows import rows
from situate.bench.families.iopddl import PUBLISHED
from situate.bench.rows import Row as BenchRow


def figures(row: BenchRow, processor_seconds: float) -> Row:
    """The plan of an instance beside its known values."""
    reference = PUBLISHED[row.instance]
    best = reference.best.value
    # Whole numbers, which a record keeps with all digits.
    cost, bound = (None if value is None else int(value) for value in (row.value, row.lower_bound))
    return {
        "instance": row.instance,
        "hash": row.problem[:16],
        "ops": row.ops,
        "seconds": round(row.seconds, 1),
        "threads": row.threads,
        "processor seconds": round(processor_seconds, 1),
        "rounds": row.evaluations,
        "fits": row.feasible,
        "cost": cost,
        "over best contest, %": cost and 100 * (cost / reference.contest - 1),
        "over best known, %": cost and 100 * (cost / best - 1),
        "XLA over best known, %": 100 * (reference.xla / best - 1) if reference.xla else None,
        "bound": bound,
        "bound over published, %": bound and 100 * (bound / reference.bound - 1),
        "gap, %": cost and bound and 100 * (1 - bound / cost),
    }


def targets(rows: Sequence[Row]) -> list[Target]:
    """The figures asked of the solver."""
    inf = float("inf")
    over = [row["over best known, %"] if row["fits"] else inf for row in rows]
    near = sum(value <= 0.5 for value in over)
    better = sum(value < 0 for value in over)
    bounds = [row["bound over published, %"] if row["fits"] else -inf for row in rows]
    tight = sum(value >= -1 for value in bounds)
    count = f"of {len(rows)}"
    return [
        Target("within 0.5 % of the best known", "all", f"{near} {count}", near == len(rows)),
        Target("better than the best known", "2", f"{better} {count}", better >= 2),
        Target("bounds within 1 % of the published", "all", f"{tight} {count}", tight == len(rows)),
        Target("median over the best known", "", f"{median(over):.2f} %", True),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--share", type=float, default=1.0, help="of the contest's limits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    table = []
    runs = rows("iopddl", options.data, options.share, options.seed, options.threads)
    for row, seconds in runs:
        table.append(figures(row, seconds))
        print(table[-1], flush=True)
    record("iopddl", {"instances": table}, targets(table), options=options)


if __name__ == "__main__":
    main()
