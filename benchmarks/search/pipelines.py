"""`auto` on uniform pipelines of pinned stages, beside 1F1B and zero-bubble schedules.

Forward op, gradients of activations and gradients of weights take one unit each, and transfers
nothing. 1F1B (D. Narayanan et al., SC 2021) keeps at most as many activations a device as there are
stages and takes 3 (m + p - 1). ZB-H1 (P. Qi et al., *Zero Bubble Pipeline Parallelism*, ICLR 2024)
keeps as many, and idles (p - 1) (F + B - W) beside the 3 m of work; ZB-H2 keeps up to 2 p - 1 and
does not idle between a device's first op and its last, but the last stage begins after p - 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import situate
from benchmarks.lib.record import Row, Target, record
from situate.bench.families.pipelines import pipeline


def main(arguments: list[str] | None = None) -> None:
    """Plan, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stages", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--time-limit", type=float, default=2.0, help="seconds of `auto`")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    situate.solve(pipeline(2, 4), time_limit=0.1)  # what is loaded late
    rows = list(_rows(options))
    record("pipelines", {"makespans": rows}, _targets(rows), options=options)


def _rows(options: argparse.Namespace) -> Iterator[Row]:
    for stages in options.stages:
        for batches in (2 * stages, 4 * stages):
            for memory in (stages, 2 * stages, None):
                yield _row(stages, batches, memory, options)


def _row(stages: int, batches: int, memory: int | None, options: argparse.Namespace) -> Row:
    problem = pipeline(stages, batches, memory)
    result = situate.solve(problem, time_limit=options.time_limit, seed=options.seed)
    return {
        "stages": stages,
        "micro-batches": batches,
        "activations_that_fit": memory,
        "fits": result.feasible,
        "auto": result.value,
        "1f1b": 3 * (batches + stages - 1),
        "zero_bubble": 3 * batches + stages - 1,
        "bound": result.lower_bound,
        "bounded_by": result.bounded_by,
        "seconds": result.seconds,
        "evaluations": result.evaluations,
    }


def _targets(rows: list[Row]) -> list[Target]:
    reached = [row["fits"] and row["auto"] <= row["zero_bubble"] for row in rows]
    proved = [row["bound"] == row["zero_bubble"] for row in rows]
    return [
        Target(what, f"all {len(rows)}", f"{sum(met)} of {len(rows)}", all(met))
        for what, met in (
            ("zero-bubble's makespan for that memory, or better", reached),
            ("the bound equal to 3 m + p - 1", proved),
        )
    ]


if __name__ == "__main__":
    main()
