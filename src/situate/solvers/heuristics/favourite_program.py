"""The linear program of favourite children, solved by HiGHS.

C. Hanen, A. Munier, *An Approximation Algorithm for Scheduling Dependent Tasks on m Processors with
Small Communication Delays*, ETFA 1995.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Bools, Floats, Ints
from situate.errors import MissingExtra


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
