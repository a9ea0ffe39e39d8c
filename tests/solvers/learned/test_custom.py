"""A method that users bring learns as those of situate do."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.evaluators.simulated import SimulatedMachine
from situate.host.machine import thread_limit
from situate.results.result import Result
from situate.solvers import solve
from situate.solvers.learned.learner import Learning
from situate.study import Study, file
from tests.solvers.families import devices, families, layered, problem
from tests.solvers.learned.climbing import climbing
from tests.solvers.test_solve import check

PROBLEM = Problem(layered(4, 3, 1, persistent=1), devices(1, 1, 2, memory=30))
METHODS = ("topological", "heft", "etf")


@pytest.mark.filterwarnings("ignore:climb. none of 40 placements ran")
@pytest.mark.parametrize("family", families())
def test_an_own_method_plans_every_family(family: str) -> None:
    result = solve(problem(family), climbing(), evaluations=40)
    check(problem(family), result)
    assert result.method == result.plan.method == "climb"
    assert result.value <= result.samples[0]


def test_an_own_method_has_no_time_limit_and_as_many_samples_as_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("situate.solvers.DEFAULT_SECONDS", 0.0)
    monkeypatch.setattr("situate.solvers.learned.driver.SAMPLES", 44)
    monkeypatch.setattr("situate.solvers.search.Search.proved", lambda _: False)
    assert len(solve(PROBLEM, climbing()).samples) == 44


def test_what_a_method_runs_has_no_more_threads_than_it_was_given() -> None:
    result = []

    class Looking(SimulatedMachine):
        name = "looking"

        def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
            result.append(thread_limit(8))
            return super().measure(placements, first)

    learning = Learning(evaluator=Looking(PROBLEM, 0.0, 0))
    solve(PROBLEM, climbing(), evaluations=4, threads=2, learning=learning)
    assert set(result) == {2}


class Interrupted(SimulatedMachine):
    """A machine that is interrupted after so many samples."""

    name = "interrupted"

    def __init__(self, after: float) -> None:
        super().__init__(PROBLEM, 0.1, 3)
        self.after = after

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        if first >= self.after:
            raise KeyboardInterrupt
        return super().measure(placements, first)


def _climbed(study: Path | None, after: float = np.inf, **attributes: Any) -> Result:
    learning = Learning(study=study, evaluator=Interrupted(after))
    return solve(PROBLEM, climbing(**attributes), evaluations=40, seed=3, learning=learning)


@pytest.mark.parametrize("every", [0.0, np.inf])
def test_an_own_method_goes_on_as_if_it_was_never_interrupted(
    every: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "CHECKPOINT_SECONDS", every)
    assert len(_climbed(tmp_path / "study", 20).samples) == 20
    resumed, whole = _climbed(tmp_path / "study"), _climbed(None)
    np.testing.assert_array_equal(resumed.samples, whole.samples)
    np.testing.assert_array_equal(resumed.placement, whole.placement)


def test_a_study_of_other_hyperparameters_is_refused(tmp_path: Path) -> None:
    _climbed(tmp_path / "study", 20, name="step 1")
    assert Study.read(tmp_path / "study").header["learner"] == "step 1"
    with pytest.raises(SituateError, match="has learner 'step 1' and this search 'step 2'"):
        _climbed(tmp_path / "study", name="step 2")
    with pytest.raises(SituateError, match="has learner 'step 1' and this search None"):
        _climbed(tmp_path / "study")


def test_the_learners_of_situate_leave_no_name_in_the_header(tmp_path: Path) -> None:
    solve(PROBLEM, "post", evaluations=12, learning=Learning(study=tmp_path / "study"))
    assert "learner" not in Study.read(tmp_path / "study").header


def test_a_method_is_known_by_its_attribute_or_its_function() -> None:
    named = partial(climbing())
    named.name = "own"  # type: ignore[attr-defined]
    assert solve(PROBLEM, named, evaluations=4).method == "own"


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (["post"], "or a function that makes a learner, got an object of type 'list'"),
        (None, "or a function that makes a learner, got an object of type 'NoneType'"),
        (partial(climbing()), "'partial' has no name for results and studies; set its attribute"),
        (lambda *_: None, "method '<lambda>': its learner lacks 'batch', see situate.Learner"),
        (climbing(name=3), "method 'climb': its learner's name must be a string, got 3"),
    ],
)
def test_what_is_no_method_is_refused(method: Any, message: str) -> None:
    with pytest.raises(SituateError, match=message):
        solve(PROBLEM, method, evaluations=12)


def test_the_name_of_a_method_of_situate_is_taken() -> None:
    def post(*arguments: Any) -> Any:
        return climbing()(*arguments)

    with pytest.raises(SituateError, match="'post' is a method of situate's; give yours another"):
        solve(PROBLEM, post)
