"""Large graphs: seconds until the first plan that fits, and `auto` at its time limit beside the
list rules, each graph in a process of its own."""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import situate
from benchmarks.lib.record import Row, Target, record
from situate.bench.families.unequal import layered
from situate.results.result import Progress

RULES = ("heft", "etf", "topological", "m_topo", "m_etf")
BYTES_WANTED = 4e9
LIMIT_WANTED = 1.05
"""Seconds of planning, as a fraction of the time limit."""


@dataclass(frozen=True)
class Case:
    """A generated graph, the cluster it is planned for, the seconds of planning, and the seconds in
    which a plan is to fit."""

    ops: int
    cluster: str
    time_limit: float
    first_wanted: float


CASES = (Case(80_000, "h100-8", 10.0, 1.0), Case(1_000_000, "h100-2x8", 60.0, 15.0))


def main(arguments: list[str] | None = None) -> None:
    """Plan, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, nargs="+", help="of the cases that are tried")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if not options.ops or case.ops in options.ops]
    rows = [_alone(case, options.seed) for case in cases]
    targets = [
        target for case, row in zip(cases, rows, strict=True) for target in _targets(case, row)
    ]
    record("first_plan", {"large graphs": rows}, targets, options=options)


def _alone(case: Case, seed: int) -> Row:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(planned, case, seed).result()


def planned(case: Case, seed: int) -> Row:
    """The row of a case. The peak of memory is of the graph, the problem and `auto`."""
    problem = situate.Problem(layered(case.ops, seed), situate.Cluster.preset(case.cluster))
    first = list[float]()

    def note_first(progress: Progress) -> None:
        if progress.feasible and not first:
            first.append(progress.seconds)

    result = situate.solve(problem, time_limit=case.time_limit, seed=seed, on_progress=note_first)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    rules = {rule: situate.solve(problem, rule) for rule in RULES}
    fitting = {rule: outcome.value for rule, outcome in rules.items() if outcome.feasible}
    best = min(fitting, key=fitting.__getitem__, default=None)
    return {
        "ops": problem.n,
        "cluster": case.cluster,
        "devices": problem.d,
        "first_fits_seconds": first[0] if first else None,
        "time_limit": case.time_limit,
        "seconds": result.seconds,
        "peak_mb": peak / 1e6,
        "auto": result.value,
        "fits": result.feasible,
        "gap": result.gap,
        "best_rule": best,
        "best_rule_over_auto": fitting[best] / result.value if best else None,
    }


def _targets(case: Case, row: Row) -> Iterator[Target]:
    what = f"{case.ops:,} ops, {row['devices']} devices"
    first, ratio = row["first_fits_seconds"], row["best_rule_over_auto"]
    yield Target(
        f"{what}: first plan that fits",
        f"at most {case.first_wanted:g} s",
        "none" if first is None else f"{first:.2f} s",
        first is not None and first <= case.first_wanted,
    )
    yield Target(
        f"{what}: the best list rule over auto",
        "at least 1",
        "no rule fits" if ratio is None else f"{ratio:.3f}",
        row["fits"] and (ratio is None or ratio >= 1),
    )
    wanted = LIMIT_WANTED * case.time_limit
    seconds = row["seconds"]
    yield Target(f"{what}: time limit", f"under {wanted:g} s", f"{seconds:.1f} s", seconds < wanted)
    peak = row["peak_mb"] * 1e6
    wanted_text = f"under {BYTES_WANTED / 1e9:g} GB"
    yield Target(f"{what}: memory", wanted_text, f"{peak / 1e9:.2f} GB", peak < BYTES_WANTED)


if __name__ == "__main__":
    main()
