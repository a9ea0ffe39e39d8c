"""Microseconds that a move takes, of annealing and in windows, on graphs of more and more ops."""

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
from situate.solvers.auto.improve.windows import MOVES_AN_OP
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
    annealing, windows = list[Row](), list[Row]()
    for ops in options.ops:
        problem = situate.Problem(layered(ops, options.seed), situate.Cluster.preset(CLUSTER))
        search = Search(problem, budget=Budget(), threads=1)
        heft(search)
        annealing.append(_of_annealing(search, options.seed))
        windows.append(_in_windows(search, options.seed))
    record(
        "move_cost",
        {"a move of annealing": annealing, "a move in a window": windows},
        options=options,
    )


def _of_annealing(search: Search, seed: int) -> Row:
    start, ops = search.incumbent, search.problem.n
    order = order_of(search.problem, start.schedule)
    core = search.simulator.core
    annealers = _core.search.make_annealers(core, "time", seed, 1, start.placement, order)
    temperature = COLD * annealers.typical_change(20)
    moves = int(np.clip(MOVES_AND_OPS // ops, 300, 20_000))
    begin = time.process_time()
    annealers.run(temperature, moves, math.inf, 1)
    return _row(ops, moves, time.process_time() - begin)


def _in_windows(search: Search, seed: int) -> Row:
    """One sweep, with the setup and the pass that begins the next."""
    start = search.incumbent
    order = order_of(search.problem, start.schedule)
    room = np.maximum(0, search.problem.capacity - start.schedule.peak).astype(np.int64)
    core, begin = search.simulator.core, time.process_time()
    windows = _core.search.make_window_searches(core, seed, 1, start.placement, order, room)
    windows.run(MOVES_AN_OP, math.inf, 1)
    return _row(search.problem.n, windows.evaluations, time.process_time() - begin)


def _row(ops: int, moves: int, seconds: float) -> Row:
    return {
        "ops": ops,
        "cluster": CLUSTER,
        "moves": moves,
        "microseconds_a_move": 1e6 * seconds / moves,
        "nanoseconds_a_move_and_op": 1e9 * seconds / moves / ops,
    }


if __name__ == "__main__":
    main()
