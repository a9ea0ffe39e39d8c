"""`auto` beside brute force where transfers are blocking: small random problems of which all
placements, and all orders of ops and transfers, are looked at."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import situate
from benchmarks.lib.record import Row, Target, record
from benchmarks.lib.small_problems import solved_problems
from tests.oracle.item_orders import best_time
from tests.oracle.problems import blocking_problem

LOOSE = 1e-9
"""Relative rounding of sums that are made in another order."""

MOST_MISSED_SHARE, MOST_EXCESS = 0.001, 0.01
"""Part of the problems that `auto` may miss, and of an optimum that a plan may be above it."""


def main(arguments: list[str] | None = None) -> None:
    """Solve, compare, print and record."""
    options, rows = solved_problems(__doc__ or "", row, 5000, arguments)
    tables = {"by rules": list(_by_rules(rows)), "missed": [row for row in rows if row["missed"]]}
    record("blocking_orders", tables, list(_targets(rows)), options=options)


def row(time_limit: float, seed: int, number: int) -> Row:
    """One problem; seconds are None where nothing fits, or in the plan of `auto`."""
    problem = blocking_problem(number)
    begin = time.perf_counter()
    result = situate.solve(problem, time_limit=time_limit, seed=seed, threads=1)
    seconds = time.perf_counter() - begin
    result.schedule.verify(problem, allow_overflow=not result.feasible)
    value = result.value if result.feasible else math.inf
    # Nothing but a shorter step is looked for: what is known is the plan of `auto`.
    best = best_time(problem, value)
    return {
        "problem": number,
        "rules": problem.rules.name,
        "ops": problem.n,
        "devices": problem.d,
        "optimum": best if math.isfinite(best) else None,
        "value": result.value if result.feasible else None,
        "above": value / best - 1 if 0 < best < value else 0.0,
        "missed": value > best * (1 + LOOSE),
        "wrongly_optimal": result.optimal and value > best * (1 + LOOSE),
        "seconds": seconds,
    }


def _by_rules(rows: list[Row]) -> Iterator[Row]:
    for rules in sorted({row["rules"] for row in rows}):
        of_rules = [row for row in rows if row["rules"] == rules]
        yield {
            "rules": rules,
            "problems": len(of_rules),
            "nothing_fits": sum(row["optimum"] is None for row in of_rules),
            "missed": sum(row["missed"] for row in of_rules),
            "most_above": max(row["above"] for row in of_rules),
            "mean_seconds": sum(row["seconds"] for row in of_rules) / len(of_rules),
            "whole_limit": sum(row["seconds"] > 0.95 for row in of_rules),
        }


def _targets(rows: list[Row]) -> Iterator[Target]:
    missed, allowed = sum(row["missed"] for row in rows), MOST_MISSED_SHARE * len(rows)
    yield Target(
        "optima that auto misses",
        f"at most {allowed:g}",
        f"{missed} of {len(rows)}",
        missed <= allowed,
    )
    above = max(row["above"] for row in rows)
    yield Target(
        "worst plan above its optimum", "at most 1 %", f"{above:.2%}", above <= MOST_EXCESS
    )
    wrong = sum(row["wrongly_optimal"] for row in rows)
    yield Target("plans wrongly called optimal", "none", str(wrong), not wrong)


if __name__ == "__main__":
    main()
