"""Post, hill climbing and `auto` on steps whose batch is cut into slices, a slice a GPU: what the
papers' own steps, which take their batch whole, cannot be placed as.

Beside them the synchronous tower and `data_parallel`, and the same methods on the whole batch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.lib.record import Row, show, write
from research import RESULTS
from research.papers.cases import Case, calibrated
from research.papers.placements import by_hand
from situate.bounds.lower_bound import lower_bound
from situate.data.problem import Problem
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers import solve
from situate.solvers.learned.driver import SAMPLES

CASES = tuple(
    Case(network, gpus, "k80")
    for network, gpus in (
        ("inception_v3", 2), ("inception_v3", 4), ("resnet50", 2), ("resnet50", 4),
        ("resnet101", 4), ("rnnlm", 2), ("nmt2", 2),
    )
)  # fmt: skip
SEARCHES = ("post", "hill_climbing", "auto")


def main(arguments: list[str] | None = None) -> None:
    """Place, print and record."""
    options = _parser().parse_args(arguments)
    rows: list[Row] = []
    for case in (calibrated(case) for case in CASES if case.name in options.rows):
        for row in _rows(case, options):
            print(row, flush=True)
            rows.append(row)
        write(options.out, {"steps": rows}, options=options)
    show("steps", rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.name for case in CASES]
    parser.add_argument("--rows", nargs="+", choices=names, default=names, metavar="CASE")
    parser.add_argument("--seeds", type=int, default=3, help="0, 1, ...; default: 3")
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"default: {SAMPLES}")
    out = RESULTS / "sliced_steps.json"
    parser.add_argument("--out", type=Path, default=out, metavar="FILE")
    return parser


def _rows(case: Case, options: argparse.Namespace) -> Iterator[Row]:
    for batch, problem in (("whole", case.problem()), ("sliced", by_hand.in_slices(case))):
        key = {"case": case.name, "batch": batch, "ops": problem.n}
        yield {**key, "method": "bound", "seed": 0, "seconds": lower_bound(problem), "took": 0.0}
        if batch == "sliced":
            yield {**key, "method": "tower", "seed": 0, "seconds": _tower(problem), "took": 0.0}
            yield {**key, **_solved(problem, "data_parallel", 0, 1)}
        for method in SEARCHES:
            for seed in range(options.seeds):
                yield {**key, **_solved(problem, method, seed, options.samples)}


def _tower(problem: Problem) -> float | None:
    seconds = SimulatedMachine(problem).measure(by_hand.tower(problem)[None], 0).seconds[0]
    return float(seconds) if np.isfinite(seconds) else None


def _solved(problem: Problem, method: str, seed: int, evaluations: int) -> Row:
    """Seconds are None where nothing fits."""
    begin = time.perf_counter()
    result = solve(problem, method, evaluations=evaluations, seed=seed)
    seconds = result.value if result.feasible else None
    took = round(time.perf_counter() - begin, 1)
    return {"method": method, "seed": seed, "seconds": seconds, "took": took}


if __name__ == "__main__":
    main()
