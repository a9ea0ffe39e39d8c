"""Favourite children of ops for `m_sct`, by Hanen and Munier's linear program or by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Bools, Floats, Ints, Order
from situate.data.problem import Problem
from situate.data.topology import accelerators, edge_producers, edge_tensors
from situate.errors import MissingExtra
from situate.solvers.late import idle_sources

SHARE = 0.5
"""Largest share of the time for the linear program."""

MAX_FAVOURITE_X = 0.5
"""An edge with x below this in the relaxed program joins an op and its favourite child. At most one
edge of an op is below it."""


@dataclass(frozen=True, eq=False)
class FavouriteProgram:
    """The program minimises the makespan over starts (n,) of ops and x (e,) of edges.

    x is 0 if the consumer is the producer's favourite child, and 1 if the two are apart. The
    relaxation allows all values between.

    Attributes:
        seconds: (n,) of the ops.
        producer, consumer: (e,) ops of the edges.
        transfer: (e,) seconds from producer to consumer if they are apart.
        free: (e,) True if x is free; otherwise x is 0.
    """

    seconds: Floats
    producer: Ints
    consumer: Ints
    transfer: Floats
    free: Bools

    def apart(self, time_limit: float | None) -> Floats:
        """x (e,) of the relaxed program; ones if it is not solved within so many seconds.

        Raises:
            MissingExtra: highspy is not installed.
        """
        try:
            import highspy
        except ImportError as error:
            raise MissingExtra("highspy", "baselines") from error
        none = np.ones(len(self.producer))
        # Times in units of the longest one, because HiGHS treats very small numbers as 0.
        unit = max(self.seconds.max(initial=0), self.transfer.max(initial=0))
        if unit == 0 or not self.free.any():
            return none
        solver = _solver(highspy, time_limit)
        solver.passModel(self._model(highspy, unit))
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return none
        return np.array(solver.getSolution().col_value[: len(none)])

    def _model(self, highspy: Any, unit: float) -> Any:
        edges, ops = len(self.producer), len(self.seconds)
        rows = _Rows()
        self._add_precedence(rows, unit)
        self._add_one_favourite(rows, self.producer)
        self._add_one_favourite(rows, self.consumer)
        self._add_ends(rows, unit)
        lp = highspy.HighsLp()
        # Columns: x of the edges, then the starts of the ops, then the makespan.
        lp.num_col_, lp.num_row_ = edges + ops + 1, rows.count
        lp.col_cost_ = np.append(np.zeros(edges + ops), 1.0)
        lp.col_lower_ = np.zeros(edges + ops + 1)
        lp.col_upper_ = np.append(self.free.astype(np.float64), np.full(ops + 1, highspy.kHighsInf))
        lp.row_lower_ = np.concatenate(rows.least)
        lp.row_upper_ = np.full(rows.count, highspy.kHighsInf)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.compressed()
        return lp

    def _add_precedence(self, rows: _Rows, unit: float) -> None:
        """Start of the consumer - start of the producer - transfer x >= seconds of the producer."""
        edge, first = np.arange(len(self.producer)), len(self.producer)
        rows.add(
            np.tile(edge, 3),
            np.concatenate((first + self.consumer, first + self.producer, edge)),
            np.concatenate((np.ones(first), -np.ones(first), -self.transfer / unit)),
            self.seconds[self.producer] / unit,
        )

    def _add_one_favourite(self, rows: _Rows, end: Ints) -> None:
        """At most one free edge of each op at this end has x = 0."""
        edge = np.flatnonzero(self.free)
        _, row, count = np.unique(end[edge], return_inverse=True, return_counts=True)
        # Of k edges with x between 0 and 1 and a sum of at least k - 1, one at most is below 1/2.
        rows.add(row, edge, np.ones(len(edge)), np.asarray(count - 1, np.float64))

    def _add_ends(self, rows: _Rows, unit: float) -> None:
        """Makespan - start >= seconds, for ops without outgoing edges; other ops end before one."""
        first, ops = len(self.producer), len(self.seconds)
        last = np.setdiff1d(np.arange(ops), self.producer)
        row = np.arange(len(last))
        rows.add(
            np.tile(row, 2),
            np.concatenate((np.full(len(last), first + ops), first + last)),
            np.concatenate((np.ones(len(last)), -np.ones(len(last)))),
            self.seconds[last] / unit,
        )


class _Rows:
    """Rows of a sparse matrix, with a lower bound for each."""

    def __init__(self) -> None:
        self.count = 0
        self.least: list[Floats] = []
        self._entries: list[tuple[Ints, Ints, Floats]] = []

    def add(self, row: Ints, column: Ints, value: Floats, least: Floats) -> None:
        """Append rows with entries (k,) and lower bounds; `row` counts from the first new row."""
        self._entries.append((row + self.count, column, value))
        self.least.append(least)
        self.count += len(least)

    def compressed(self) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
        """Compressed rows: starts (rows + 1,), columns (k,) and values (k,)."""
        row, column, value = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        by_row = np.argsort(row, kind="stable")
        # An empty row starts where the next one does.
        start = np.searchsorted(row[by_row], np.arange(self.count + 1))
        return start.astype(np.int32), column[by_row].astype(np.int32), value[by_row]


def _solver(highspy: Any, time_limit: float | None) -> Any:
    """A silent solver on one thread, which gives the same solution in every run."""
    # `Highs` itself writes a banner to standard output before any option can forbid it.
    solver = highspy._Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    if time_limit is not None:
        solver.setOptionValue("time_limit", max(0.0, time_limit))
    return solver


def favourite_children(problem: Problem, seconds: float | None) -> Order:
    """(n,) the favourite child of each op; -1 for none.

    If the program is not solved in its share of `seconds`, no op has one.

    Raises:
        MissingExtra: highspy is not installed.
    """
    program = favourite_program(problem)
    separation = program.apart(None if seconds is None else SHARE * seconds)
    is_favourite = program.free & (separation < MAX_FAVOURITE_X)
    favourite = np.full(problem.n, -1, np.int32)
    favourite[program.producer[is_favourite]] = program.consumer[is_favourite]
    return favourite


def critical_children(problem: Problem, rank: Floats) -> Order:
    """(n,) for each op, the child on its longest path to the end; -1 for none.

    A child of several ops belongs to the op of the highest rank. No linear program is needed.

    Args:
        rank: (n,) seconds of the longest path from each op to the end.
    """
    program = favourite_program(problem)
    behind = program.transfer + rank[program.consumer]
    favourite = np.full(problem.n, -1, np.int32)
    has_parent = np.zeros(problem.n, np.bool_)
    # Ops of high rank choose first, each the child with the longest path.
    for edge in np.lexsort((-behind, -rank[program.producer])).tolist():
        op, child = program.producer[edge], program.consumer[edge]
        if program.free[edge] and favourite[op] < 0 and not has_parent[child]:
            favourite[op], has_parent[child] = child, True
    return favourite


def favourite_program(problem: Problem) -> FavouriteProgram:
    """The linear program of a problem, with one edge per pair of an op and its reader.

    An edge has the transfer seconds of all tensors between the two. Sources without work have no
    edges, because they go to their readers. Edges within a unit cost nothing, because its ops share
    a device.
    """
    producer = edge_producers(problem).astype(np.int64)
    has_work = ~idle_sources(problem)[producer]
    # A pair is one integer; the seconds of its edges (e,) add up.
    pair, place = np.unique(
        (producer * problem.n + problem.consumers)[has_work], return_inverse=True
    )
    transfer = np.zeros(len(pair))
    np.add.at(transfer, place, _transfer_seconds(problem)[edge_tensors(problem)][has_work])
    before, after = np.divmod(pair, problem.n)
    free = problem.unit[before] != problem.unit[after]
    return FavouriteProgram(
        _op_seconds(problem), before, after, np.where(free, transfer, 0.0), free
    )


def _transfer_seconds(problem: Problem) -> Floats:
    """(m,) mean seconds of a tensor between two accelerators; zero if there is only one."""
    devices = accelerators(problem)
    pairs = [(a, b) for a in devices for b in devices if a != b]
    if not pairs:
        return np.zeros(len(problem.size))
    latency = np.mean([problem.latency[pair] for pair in pairs])
    per_byte = np.mean([1 / problem.bandwidth[pair] for pair in pairs])
    own, size = problem.transfer_seconds, problem.size
    seconds = np.where(problem.signal, 0.0, latency + size * per_byte)
    return np.asarray(np.where(np.isnan(own), seconds, own) + problem.cluster.synchronisation)


def _op_seconds(problem: Problem) -> Floats:
    """(n,) mean seconds of an op on the accelerators that may run it, else on all such devices."""
    allowed = problem.allowed[problem.unit]
    best = allowed.copy()
    best[:, np.setdiff1d(np.arange(problem.d), accelerators(problem))] = False
    may = np.where(best.any(axis=1, keepdims=True), best, allowed)
    return np.asarray(np.where(may, problem.seconds, 0.0).sum(axis=1) / may.sum(axis=1))
