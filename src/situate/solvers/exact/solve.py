"""CP-SAT in a thread of its own, so that Ctrl-C and progress reports work."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from situate.data.arrays import Ints
from situate.errors import MissingExtra, SituateError
from situate.solvers.exact.model import Model

MOST_WORKERS = 8
"""Largest number of solver threads, enough for its main strategies; each holds the model."""

POLL = 0.05
"""Seconds between two polls for new solutions."""


def cp_model() -> Any:
    """The module `ortools.sat.python.cp_model`.

    Raises:
        MissingExtra: OR-tools is not installed.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise MissingExtra("ortools", "exact") from None
    return cp_model


@dataclass(frozen=True)
class Solution:
    """A solution of a model.

    Attributes:
        device: (units,) indices.
        start: (n,) of the ops; None if the model has no times.
        sent: starts of transfers by (tensor, target), including needless ones.
    """

    device: Ints
    start: Ints | None
    sent: Mapping[tuple[int, int], int]


class Run:
    """One run of CP-SAT.

    Args:
        cp: the module `cp_model`.
        model: the model to solve.
        seconds: wall seconds at most, or None.
        effort: deterministic seconds at most, or None; with them it is one thread.
        threads, seed: of the solver.
    """

    def __init__(
        self,
        cp: Any,
        model: Model,
        seconds: float | None,
        effort: float | None,
        threads: int,
        seed: int,
    ) -> None:
        self._cp, self._model = cp, model
        self._solver = cp.CpSolver()
        parameters = self._solver.parameters
        # CP-SAT's seed is a signed number of 32 bits.
        parameters.random_seed = seed & 0x7FFFFFFF
        parameters.num_workers = min(threads, MOST_WORKERS) if effort is None else 1
        # The solver's own handler would leave the process without Python's.
        parameters.catch_sigint_signal = False
        if parameters.num_workers == 1:
            # One thread takes turns at the strategies that several would run side by side.
            parameters.interleave_search = True
        if effort is not None:
            parameters.max_deterministic_time = effort
        if seconds is not None:
            parameters.max_time_in_seconds = seconds
        self._solutions: list[Solution] = []
        self._status: Any = None
        self._error: BaseException | None = None

    def solutions(self) -> Generator[Solution | None]:
        """Solutions, each better than the one before, and None at each poll without a new one.

        Raises:
            SituateError: the solver rejects the model as invalid.
        """
        thread = threading.Thread(target=self._solve, daemon=True)
        thread.start()
        count = 0
        try:
            while thread.is_alive() or count < len(self._solutions):
                if count < len(self._solutions):
                    count += 1
                    yield self._solutions[count - 1]
                else:
                    thread.join(POLL)
                    yield None
        finally:
            # Repeated, because the solver ignores a request to stop before it has begun.
            while thread.is_alive():
                self._solver.stop_search()
                thread.join(POLL)
        self._check()

    def _solve(self) -> None:
        try:
            self._status = self._solver.solve(self._model.model, _callback(self._cp, self))
        except BaseException as error:  # raised again in the thread that listens
            self._error = error

    def keep(self, value: Any) -> None:
        """Store a solution; `value` maps a variable to its value."""
        placing = self._model.placing
        device = np.zeros(placing.problem.units, np.int64)
        for (unit, where), here in placing.on.items():
            if value(here):
                device[unit] = where
        start = [value(variable) for variable in self._model.start]
        sent = {arrival: value(at) for arrival, at in self._model.sent.items()}
        self._solutions.append(Solution(device, np.array(start, np.int64) if start else None, sent))

    def _check(self) -> None:
        cp = self._cp
        if self._error is not None:
            raise self._error
        if self._status == cp.MODEL_INVALID:
            why = self._model.model.validate().strip().splitlines() or ["no reason given"]
            raise SituateError(f"CP-SAT cannot take the model ({why[0]}): use another method")

    @property
    def best(self) -> Solution | None:
        """The last and best solution so far."""
        return self._solutions[-1] if self._solutions else None

    @property
    def optimal(self) -> bool:
        """True if the best solution is proved optimal."""
        return bool(self._status == self._cp.OPTIMAL)

    @property
    def bound(self) -> float | None:
        """Lower bound on the objective, in seconds or bytes; None if the solver has none."""
        with_bound = (self._cp.OPTIMAL, self._cp.FEASIBLE, self._cp.UNKNOWN)
        if self._status not in with_bound:
            return None
        return max(0.0, float(self._solver.best_objective_bound)) * self._model.unit

    @property
    def effort(self) -> float:
        """Deterministic seconds spent."""
        if self._status is None:
            return 0.0
        return float(self._solver.response_proto.deterministic_time)


def _callback(cp: Any, run: Run) -> Any:
    class Callback(cp.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            run.keep(self.value)

    return Callback()
