"""`auto` beside brute force: small random problems of which every plan is looked at.

A problem has up to seven ops on up to three devices, of which most hold only a part of all
bytes; objectives and rules take turns. All placements in all orders by all decoders are compared
with the bound, with claims of optimality, and with the plan of `auto`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import situate
from benchmarks.lib.record import Row, Target, record
from benchmarks.lib.small_problems import solved_problems
from tests.oracle.problems import small_problem
from tests.solvers.exhaustive import optimum

LOOSE = 1e-9
"""Relative rounding of sums that are made in another order."""

MISSES = 0.01
"""Share of the problems on which `auto` may miss the optimum."""


def main(arguments: list[str] | None = None) -> None:
    """Solve, compare, print and record."""
    options, rows = solved_problems(__doc__ or "", row, 2000, arguments)
    tables = {"by kind": list(_by_kind(rows)), "missed": [row for row in rows if row["missed"]]}
    record("brute_force", tables, _targets(rows), options=options)


def row(time_limit: float, seed: int, number: int) -> Row:
    """One problem; values are None where nothing fits, or in the plan that was found."""
    problem = small_problem(number)
    best = optimum(problem)
    begin = time.perf_counter()
    result = situate.solve(problem, time_limit=time_limit, seed=seed, threads=1)
    seconds = time.perf_counter() - begin
    result.schedule.verify(problem, allow_overflow=not result.feasible)
    value = result.value if result.feasible else math.inf
    return {
        "problem": number,
        "objective": problem.objective,
        "rules": problem.rules.name,
        "ops": problem.n,
        "devices": problem.d,
        "optimum": best if math.isfinite(best) else None,
        "value": result.value if result.feasible else None,
        "missed": value > best * (1 + LOOSE),
        "below_optimum": value < best * (1 - LOOSE),
        "below_bound": min(value, best) < (result.lower_bound or 0.0),  # None where nothing fits
        "called_optimal": result.optimal,
        "wrongly_optimal": result.optimal and value > best * (1 + LOOSE),
        "seconds": seconds,
    }


def _by_kind(rows: list[Row]) -> Iterator[Row]:
    kinds = dict.fromkeys((row["objective"], row["rules"]) for row in rows)
    for objective, rules in sorted(kinds):
        of_kind = [r for r in rows if (r["objective"], r["rules"]) == (objective, rules)]
        yield {
            "objective": objective,
            "rules": rules,
            "problems": len(of_kind),
            "nothing_fits": sum(row["optimum"] is None for row in of_kind),
            "missed": sum(row["missed"] for row in of_kind),
            "called_optimal": sum(row["called_optimal"] for row in of_kind),
            "mean_seconds": sum(row["seconds"] for row in of_kind) / len(of_kind),
            "whole_second": sum(row["seconds"] > 0.95 for row in of_kind),
        }


def _targets(rows: list[Row]) -> list[Target]:
    def none(what: str, column: str) -> Target:
        result = [str(row["problem"]) for row in rows if row[column]]
        return Target(what, "none", ", ".join(result) or f"none of {len(rows)}", not result)

    missed = sum(row["missed"] for row in rows)
    share = f"{missed} of {len(rows)}"
    return [
        none("optima and plans below the bound", "below_bound"),
        none("plans below the optimum", "below_optimum"),
        none("plans wrongly called optimal", "wrongly_optimal"),
        Target("optima that auto misses", "under 1 %", share, missed < MISSES * len(rows)),
    ]


if __name__ == "__main__":
    main()
