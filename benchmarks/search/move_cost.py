"""Microseconds that a move of annealing takes, on graphs of more and more ops."""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

import situate
from benchmarks.lib.record import Row, record
from situate import _core
from situate.bench.families.unequal import layered
from situate.simulation.decoding import order_of
from situate.solvers.budget import Budget
from situate.solvers.heuristics.list_rules import heft
from situate.solvers.search import Search

CLUSTER = "h100-2x8"
OPS = (200, 2_000, 20_000, 100_000, 300_000)
MOVES_AND_OPS = 100_000_000
"""Moves are so many over the ops, and 20,000 at most."""

COLD = 0.003
"""Temperature as a share of the typical change of a move."""


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, nargs="+", default=list(OPS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rows = [_row(ops, options.seed) for ops in options.ops]
    record("move_cost", {"a move of annealing": rows}, options=options)


def _row(ops: int, seed: int) -> Row:
    problem = situate.Problem(layered(ops, seed), situate.Cluster.preset(CLUSTER))
    search = Search(problem, budget=Budget(), threads=1)
    heft(search)
    start = search.incumbent
    annealers = _core.search.make_annealers(
        search.simulator.core,
        "time",
        seed,
        1,
        start.placement,
        order_of(problem, start.schedule),
    )
    temperature = COLD * annealers.typical_change(20)
    moves = int(np.clip(MOVES_AND_OPS // ops, 300, 20_000))
    begin = time.process_time()
    annealers.run(temperature, moves, math.inf, 1)
    seconds = time.process_time() - begin
    return {
        "ops": ops,
        "cluster": CLUSTER,
        "moves": moves,
        "microseconds_a_move": 1e6 * seconds / moves,
        "nanoseconds_a_move_and_op": 1e9 * seconds / moves / ops,
    }


if __name__ == "__main__":
    main()
