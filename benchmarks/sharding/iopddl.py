"""Instances of the ASPLOS 2025 contest on sharding, beside the best published costs and bounds.

    .venv/bin/python -m benchmarks.sharding.iopddl FOLDER BEST.csv [--share 1]

FOLDER has the instances as NAME.json.gz. BEST.csv has a row an instance: `instance`, `timeout_s`
(the contest's limit), `best_contest`, `later_best_cost`, `xla_cost` (of XLA's own solver),
`gurobi_best` and `lower_bound`. Every instance gets its limit of the contest times --share.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.lib.record import Row, Target, record
from situate.sharding import read_sharding_problem, solve_sharding


def measure(path: Path, known: dict[str, str], options: argparse.Namespace) -> Row:
    """The plan of an instance beside its known values."""
    problem = read_sharding_problem(path)
    limit = options.share * float(known["timeout_s"])
    begin = time.process_time()
    plan = solve_sharding(problem, time_limit=limit, seed=options.seed, threads=options.threads)
    processor_seconds = time.process_time() - begin
    figures = ("best_contest", "later_best_cost", "xla_cost", "gurobi_best")
    best = min(float(known[figure]) for figure in figures if known[figure])
    published = float(known["lower_bound"])
    return {
        "instance": path.name.partition(".")[0],
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest()[:16],
        "ops": len(problem.costs),
        "seconds": round(plan.seconds, 1),
        "threads": options.threads,
        "processor seconds": round(processor_seconds, 1),
        "rounds": plan.rounds,
        "fits": plan.feasible,
        "cost": plan.cost,
        "over best contest, %": 100 * (plan.cost / float(known["best_contest"]) - 1),
        "over best known, %": 100 * (plan.cost / best - 1),
        "XLA over best known, %": 100 * (float(known["xla_cost"]) / best - 1)
        if known["xla_cost"]
        else None,
        "bound": plan.bound,
        "bound over published, %": 100 * (plan.bound / published - 1),
        "gap, %": 100 * plan.gap,
    }


def targets(rows: Sequence[Row]) -> list[Target]:
    """The figures asked of the solver."""
    over = [row["over best known, %"] for row in rows]
    near = sum(value <= 0.5 for value in over)
    better = sum(row["over best known, %"] < 0 for row in rows)
    bounds = [row["bound over published, %"] for row in rows]
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
    parser.add_argument("folder", type=Path)
    parser.add_argument("best", type=Path)
    parser.add_argument("--share", type=float, default=1.0, help="of the contest's limits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with options.best.open() as file:
        published = {row["instance"]: row for row in csv.DictReader(file)}
    rows = []
    for path in sorted(options.folder.glob("*.json.gz")):
        rows.append(measure(path, published[path.name.partition(".")[0]], options))
        print(rows[-1], flush=True)
    record("iopddl", {"instances": rows}, targets(rows), options=options)


if __name__ == "__main__":
    main()
