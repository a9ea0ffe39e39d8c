"""The cells of both tables that depend on memory, with 11e9 bytes a GPU and with 11 GiB.

The papers' GPUs had 11 GB, which may be either. One placement on one GPU and the expert's are run
by the simulator; nothing is searched.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.lib.record import Row, record
from research import RESULTS
from research.papers import published
from research.papers.cases import Case, calibrated
from situate.data.arrays import Placement
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.simulation.decoding import priority_of, step_times
from situate.simulation.simulator import Simulator
from situate.solvers.heuristics.baselines import everything_on, expert_placement

LIMITS = {"11 GB": 11 * 10**9, "11 GiB": 11 * 2**30}
"""Bytes of a GPU; the presets have the first."""

CASES = (
    *(Case(row.network, row.gpus, "k80") for row in published.POST),
    *(Case(row.network, row.gpus, "k40") for row in published.HIERARCHICAL),
)


def main(arguments: list[str] | None = None) -> None:
    """Simulate, print and record."""
    names = [_name(case) for case in CASES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", choices=names, default=names, metavar="ROW")
    options = parser.parse_args(arguments)
    rows = [row for case in CASES if _name(case) in options.rows for row in cells(calibrated(case))]
    record("memory_limits", {"placements": rows}, options=options, folder=RESULTS)


def _name(case: Case) -> str:
    """Such as `k80/resnet50/2`."""
    return f"{case.machine}/{case.name}"


def cells(case: Case) -> Iterator[Row]:
    """A row for each fixed placement: the bytes of the fullest GPU, and which limits they meet."""
    problem = case.problem()
    for name, placed in PLACEMENTS.items():
        peak = fullest(problem, placed(problem))
        fits = {f"fits {limit}": peak <= size for limit, size in LIMITS.items()}
        yield {"machine": case.machine, "case": case.name, "placement": name, "bytes": peak} | fits


def _on_one_gpu(problem: Problem) -> Placement:
    return everything_on(problem, accelerators(problem)[0])


PLACEMENTS: dict[str, Callable[[Problem], Placement]] = {
    "single": _on_one_gpu,
    "expert": expert_placement,
}
"""Placements that no learner and no limit has a part in."""


def fullest(problem: Problem, placement: Placement) -> int:
    """Peak bytes of the GPU that holds most, in the order of the graph."""
    priority = priority_of(np.array(problem.graph.order))
    _, peak = step_times(Simulator(problem), placement[None], priority, threads=1)
    return int(peak[0, accelerators(problem)].max())


if __name__ == "__main__":
    main()
