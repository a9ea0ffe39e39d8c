"""Jobs return the values of calls in this process, in order, despite failing workers."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from situate.errors import SituateError
from situate.evaluators.workers.jobs import Function, Jobs
from situate.evaluators.workers.places import Place
from tests.evaluators.workers import faulty
from tests.evaluators.workers.faulty import Counting, KilledAt, RaisesAt, square

CALLS = [(number,) for number in range(8)]
VALUES = [100 + number**2 for number in range(8)]


# Values and their order, with and without workers.
def test_values_come_in_the_order_of_the_calls_though_a_worker_is_killed(tmp_path: Path) -> None:
    harm = KilledAt(tmp_path, number=3)
    with Place.parse(2).jobs(square, shared=(100, harm)) as jobs:
        assert list(jobs.map(CALLS)) == VALUES
        assert sum(jobs.counts.failures.values()) == 1
    assert [harm.attempts(number) for number in range(8)] == [1, 1, 1, 2, 1, 1, 1, 1]


def test_one_worker_is_this_process(tmp_path: Path) -> None:
    with Place.parse(1).jobs(square, shared=(100, Counting(tmp_path))) as jobs:
        assert jobs.ready(0.0) == 1
        assert dict(jobs.each(CALLS)) == dict(enumerate(VALUES))
        assert not jobs.counts.completed


# Errors name the call and its place.
def test_an_error_names_where_it_was_raised(tmp_path: Path) -> None:
    with (
        Jobs(square, 2, shared=(100, RaisesAt(tmp_path, number=0))) as jobs,
        pytest.raises(RuntimeError, match=r"(?s)Unsendable: 1 and 2.*, in square"),
    ):
        list(jobs.map(CALLS[:1]))


def test_a_job_that_every_worker_fails_at_is_named(tmp_path: Path) -> None:
    with (
        Jobs(square, 2, shared=(100, KilledAt(tmp_path, number=0, times=9))) as jobs,
        pytest.raises(
            SituateError, match=r"^square\(0,\): 3 workers failed at it, the last one was"
        ),
    ):
        list(jobs.map(CALLS[:1]))


# Functions are sent by name.
def test_a_program_that_is_run_as_a_module_is_found_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(square, "__module__", "__main__")
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", faulty.__spec__, raising=False)
    assert Function.of(square, ()).module == "tests.evaluators.workers.faulty"
    monkeypatch.setattr(main, "__spec__", None)
    with pytest.raises(SituateError, match=r"'square' cannot be imported .* \(python -m\)$"):
        Function.of(square, ())


@pytest.mark.parametrize("function", [lambda: 1, partial(square, 1)])
def test_a_function_without_a_name_is_refused(function: object) -> None:
    with pytest.raises(SituateError, match="cannot be imported by them"):
        Function.of(function, ())  # type: ignore[arg-type]
