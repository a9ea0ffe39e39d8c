"""Answers of learners and evaluators are checked as they come in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from situate.data import placements
from situate.data.graph import Graph, Op
from situate.data.placements import check_devices
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.results.result import Result
from situate.simulation import decoding, simulator
from situate.solvers import solve
from situate.solvers.learned.learner import Learning
from situate.study import Study
from situate.validation import Where
from tests.solvers.families import devices
from tests.solvers.learned.climbing import climbing

OPS = (
    Op("free", seconds={"*": 1.0}),
    Op("pinned", seconds={"*": 1.0}, device="d1"),
    Op("one", seconds={"*": 1.0}, group="g"),
    Op("other", seconds={"*": 2.0}, group="g"),
)
PROBLEM = Problem(Graph("restricted", OPS), devices(1, 1))


def with_device(op: int, device: int) -> Callable[[Any], Any]:
    """Puts an op of the third of the placements on a device."""

    def spoil(placements: NDArray[np.int32]) -> NDArray[np.int32]:
        placements[:, 2:] = placements[:, [0]]
        placements[2, op] = device
        return placements

    return spoil


def solved(method: Any, study: Path | None = None, evaluator: Any = None) -> Result:
    evaluator = evaluator or Answering()
    learning = Learning(study=study, evaluator=evaluator)
    return solve(PROBLEM, method, evaluations=12, learning=learning)


# A learner of the user's own may answer anything; each wrong answer is refused by name.


class Answering:
    """A machine with the answers that it is given."""

    name = "answering"
    at_once: Any = None
    finalists = 0

    def __init__(self, answer: Callable[[int], Any] | None = None) -> None:
        self.answer = answer or (lambda k: Measurements(np.ones(k), np.zeros(k, np.uint8)))

    def measure(self, placements: NDArray[np.int32], first: int) -> Any:
        return self.answer(len(placements))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p: p[:-1], r"samples 4 to 7: the result of ask\(4\): must be integers of shape"),
        (lambda p: p[:, :-1], r"of shape \(4, 4\), got int32 of shape \(4, 3\)"),
        (lambda p: p.astype(float), r"of shape \(4, 4\), got float64"),
        (lambda p: None, r"of shape \(4, 4\), got object"),
        (with_device(0, 2), "sample 6: op 'free' is placed on device 2; there are devices 0 to 1"),
        (with_device(0, -1), "sample 6: op 'free' is placed on device -1"),
        (with_device(1, 0), "sample 6: op 'pinned' is placed on 'd0', .* it may on 'd1'"),
        (lambda p: with_device(3, 1 - p[2, 0])(p), "sample 6: group 'g' is split: op 'one' is"),
    ],
)
def test_what_a_learner_may_not_ask_for_is_refused_and_leaves_no_trace(
    spoil: Callable[[Any], Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(
        SituateError, match=f"method 'climb': {message}|method 'climb': .*{message}"
    ):
        solved(climbing(spoil), tmp_path / "study")
    assert len(Study.read(tmp_path / "study")) == 4
    assert len(solved(climbing(), tmp_path / "study").samples) == 12


@pytest.mark.parametrize("spoil", [lambda p: p.astype(np.int64), lambda p: p.tolist()])
def test_integers_of_any_kind_are_placements(spoil: Callable[[Any], Any]) -> None:
    np.testing.assert_array_equal(solved(climbing(spoil)).placement, solved(climbing()).placement)


def test_a_learner_may_ask_for_the_same_array_again_and_again() -> None:
    buffer = np.array([[0, 1, 0, 0]] * 4, np.int32)

    def refill(placements: NDArray[np.int32]) -> NDArray[np.int32]:
        buffer[:] = [1, 1, 1, 1]
        return buffer

    result = solved(climbing(refill, ask=lambda k: buffer))
    refill(buffer)
    assert result.placement.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("batch", [0, -1, 1.5, None])
def test_a_batch_is_at_least_one(batch: Any) -> None:
    with pytest.raises(SituateError, match=f"'climb': batch: must be .* at least 1, got {batch}"):
        solved(climbing(batch=batch))


@pytest.mark.parametrize(
    "state", [None, {1: np.ones(1)}, {"a": object()}, {"a": [np.ones, 1]}, {"a": [[1], [1, 2]]}]
)
def test_a_state_is_arrays_by_name(state: Any, tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="'climb': state: must map names to arrays of numbers"):
        solved(climbing(state=lambda: state), tmp_path / "study")


FINE, NONE = np.ones(4), np.zeros(4, np.uint8)


# So may an evaluator, whose measurements reach the study only after the checks.


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((FINE, NONE), r"returned a tuple; measure must return Measurements\(seconds, outcome\)"),
        (Measurements([1.0] * 4, NONE), r"seconds: must be an array \(k,\) of floats, got .*list"),  # type: ignore[arg-type]
        (Measurements(FINE, [0] * 4), r"outcome: must be an array \(k,\) of integers, got .*list"),  # type: ignore[arg-type]
        (Measurements(FINE[:, None], NONE), r"of floats, got float64 \(4, 1\)"),
        (Measurements(FINE, NONE * 1.0), r"of integers, got float64 \(4,\)"),
        (Measurements(FINE, NONE[:3]), "gave 4 seconds and 3 outcomes"),
        (Measurements(FINE[:3], NONE[:3]), "measured 3 of 4 placements"),
        (Measurements(FINE, NONE + np.uint8(9)), "gave outcome 9; known: 0 ok, 1 out_of_memory"),
        (Measurements(FINE, np.full(4, -1)), "gave outcome -1; known: 0 ok"),
        (Measurements(FINE * np.nan, NONE), "measured nan seconds"),
    ],
)
def test_what_an_evaluator_may_not_answer_is_refused_and_leaves_no_trace(
    answer: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(SituateError, match=f"evaluator 'answering' {message}|{message}") as error:
        solved(climbing(), tmp_path / "study", Answering(lambda k: answer))
    assert str(error.value).startswith("evaluator 'answering'")
    assert len(Study.read(tmp_path / "study")) == 0


class Yielding(Answering):
    """A machine that says of these rows, in turn, that they are measured."""

    def __init__(self, *rows: list[int]) -> None:
        super().__init__()
        self.rows = rows

    def measure_each(
        self, placements: NDArray[np.int32], numbers: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], Any]]:
        for rows in self.rows:
            yield np.array(rows, np.int64), self.answer(len(rows))


def test_rows_may_come_in_any_order() -> None:
    assert len(solved(climbing(), None, Yielding([2, 0], [], [3], [1])).samples) == 12


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1]], r"measure_each ended without rows \[2, 3\]"),
        ([[0, 1], [1, 2]], r"must yield rows 0 to 3, each once, got \[1, 2\] where \[2, 3\]"),
        ([[0, 1, 1, 2]], r"each once, got \[0, 1, 1, 2\] where \[0, 1, 2, 3\]"),
        ([[4]], r"must yield rows 0 to 3, each once, got \[4\]"),
        ([[-1]], r"must yield rows 0 to 3, each once, got \[-1\]"),
    ],
)
def test_every_row_is_measured_once(rows: list[list[int]], message: str) -> None:
    with pytest.raises(SituateError, match=f"^evaluator 'answering': .*{message}"):
        solved(climbing(), None, Yielding(*rows))


def test_measurements_may_have_other_widths() -> None:
    narrow = Answering(lambda k: Measurements(np.ones(k, np.float32), np.zeros(k, np.int64)))  # type: ignore[arg-type]
    np.testing.assert_array_equal(solved(climbing(), None, narrow).samples, np.ones(12))


# The parts of the protocols are checked before anything is measured.


def test_an_evaluator_has_all_parts() -> None:
    with pytest.raises(SituateError, match="evaluator 'object' lacks 'name', see situate"):
        solved(climbing(), None, object())


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("name", None, "evaluator 'Answering': name: must be a string, got None"),
        ("at_once", 0, "evaluator 'answering': at_once: must be None or at least 1, got 0"),
        ("at_once", 1.5, "evaluator 'answering': at_once: must be None or an integer, got 1.5"),
        ("finalists", -3, "evaluator 'answering': finalists: must be at least 0, got -3"),
        ("finalists", None, "evaluator 'answering': finalists: must be an integer, got None"),
    ],
)
def test_the_parts_of_an_evaluator_are_checked_before_it_measures(
    part: str, value: Any, message: str, tmp_path: Path
) -> None:
    machine = Answering()
    setattr(machine, part, value)
    with pytest.raises(SituateError, match=message):
        solved(climbing(), tmp_path / "study", machine)
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("rules", ["situate", "dnn-partitioning"])
def test_a_placement_is_looked_at_once_as_the_learner_answers(
    rules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def counted(problem: Problem, given: NDArray[Any], where: Where) -> NDArray[np.int32]:
        looked.append(len(given))
        return check_devices(problem, given, where)

    for module in (placements, decoding, simulator):
        monkeypatch.setattr(module, "check_devices", counted)
    problem = Problem(PROBLEM.graph, PROBLEM.cluster, "time", rules)
    solve(problem, climbing(), evaluations=12)
    assert sum(looked) == 12
