"""A run of the solver."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from situate.errors import MissingExtra, SituateError
from situate.solvers import solve
from situate.solvers.exact.model import Model, build
from situate.solvers.exact.solve import Run, cp_model
from situate.solvers.heuristics.baselines import single
from situate.solvers.search import Search
from tests.solvers.families import problem
from tests.solvers.programs import needs_ortools


# Without OR-tools one line says what to install.
def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools", None)
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(MissingExtra, match=r"needs ortools.*pip install 'situate\[exact\]'"):
        solve(problem("chain"), "cp_sat", evaluations=10)


def _model(family: str = "fork") -> Model:
    search = Search(problem(family))
    single(search)
    return build(cp_model(), search, "time")


def _run(built: Model, effort: float = 1.0) -> Run:
    run = Run(cp_model(), built, None, effort, 1, 0)
    for _ in run.solutions():
        pass
    return run


# The solver's answers, whatever its status is.
@needs_ortools
def test_optimal_the_bound_is_the_best_solution():
    run = _run(_model("chain"))
    assert run.optimal
    assert run.bound == 8
    assert run.best is not None
    assert run.best.device.tolist() == [0] * 8
    assert run.best.start is not None
    assert run.best.start.tolist() == sorted(run.best.start.tolist())
    assert run.effort > 0


@needs_ortools
def test_feasible_the_bound_is_below_the_best_solution():
    run = _run(_model("layered"), 0.02)
    assert not run.optimal
    assert run.best is not None
    assert run.bound is not None
    assert 0 < run.bound < 60


@needs_ortools
def test_unknown_there_is_a_bound_and_no_solution():
    run = _run(_model("layered"), 1e-9)
    assert run.best is None
    assert not run.optimal
    assert run.bound is not None
    assert 0 <= run.bound < 60


@needs_ortools
def test_infeasible_there_is_neither():
    built = _model("chain")
    built.limit(7.0)
    run = _run(built)
    assert (run.best, run.bound, run.optimal) == (None, None, False)


@needs_ortools
def test_a_placement_that_is_forbidden_is_not_found():
    built = _model("chain")
    built.forbid(np.zeros(8, np.int64))
    run = _run(built)
    assert (run.best, run.bound) == (None, None)


@needs_ortools
def test_an_invalid_model_is_named():
    built = _model("chain")
    huge = 2**62
    built.model.add(huge * built.start[0] + huge * built.start[1] <= 5)
    with pytest.raises(
        SituateError, match=r"CP-SAT cannot take the model \(.+\): use another"
    ) as error:
        _run(built)
    assert "\n" not in str(error.value)


@needs_ortools
def test_the_solver_ends_with_whoever_listens():
    solutions = Run(cp_model(), _model("bus"), 600.0, None, 1, 0).solutions()
    next(solutions)
    solutions.close()


@needs_ortools
def test_the_effort_and_the_seed_decide():
    first, second = (_run(_model("bus"), 0.05) for _ in range(2))
    assert first.best is not None
    assert second.best is not None
    assert np.array_equal(first.best.device, second.best.device)
    assert (first.bound, first.effort) == (second.bound, second.effort)


@needs_ortools
def test_what_goes_wrong_in_the_solvers_thread_is_raised_in_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(cp_model().CpSolver, "solve", fail)
    run = Run(cp_model(), _model("chain"), None, 1.0, 1, 0)
    with pytest.raises(MemoryError, match="no room"):
        next(solution for solution in run.solutions() if solution is not None)
    assert (run.effort, run.bound, run.optimal) == (0.0, None, False)
