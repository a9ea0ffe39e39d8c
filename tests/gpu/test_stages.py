"""Stages fail, hang and crash, each for itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gpu import stages
from benchmarks.gpu.stages import Guard, Outcome, Stage, run_all, trim


def stage(manner: str, seconds: float = 20.0) -> Stage:
    return Stage(manner, "tests.gpu.misbehaving", (manner,), prepare=seconds, measure=seconds)


@pytest.fixture
def guard() -> Guard:
    return Guard(60.0)


@pytest.mark.parametrize(
    ("manner", "seconds", "verdict", "error"),
    [
        ("measures", 20.0, "done", ""),
        ("fails", 20.0, "failed", "ValueError: no such kernel"),
        ("crashes", 20.0, "crashed", "ended by SIGSEGV"),
        ("exits", 20.0, "crashed", "ended with status 3"),
        ("hangs before", 1.0, "hung", "not ready after 1 s"),
        ("hangs", 1.0, "hung", "no end after 1 s"),
        ("hangs deaf", 1.0, "hung", "no end after 1 s"),
    ],
)
def test_the_end_of_a_stage_is_known_and_its_figures_are_there(
    guard: Guard, monkeypatch: pytest.MonkeyPatch, manner: str, seconds: float, verdict: str,
    error: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(stages, "SECONDS_TO_ABORT", 0.5)
    outcome = guard.run(stage(manner, seconds))
    assert outcome.verdict == verdict
    assert error in outcome.error
    assert outcome.figures["first"] == 1


def test_a_part_that_fails_leaves_the_others_their_turn(guard: Guard) -> None:
    outcome = guard.run(stage("fails in part"))
    assert outcome.verdict == "failed"
    assert outcome.error.startswith("a part: Traceback")
    assert outcome.error.endswith("ZeroDivisionError: division by zero")
    assert outcome.figures == {"first": 1, "second": 2}


def test_a_crash_or_a_hang_says_where(guard: Guard) -> None:
    for manner in ("crashes", "hangs"):
        assert "misbehaving.py" in guard.run(stage(manner, 1.0)).error


def test_one_stage_at_a_time_has_the_device_also_after_one_that_hangs(guard: Guard) -> None:
    outcomes: dict[str, Outcome] = {}
    names = ("hangs", "measures", "measures again")
    several = [Stage(name, "tests.gpu.misbehaving", (name.removesuffix(" again"),), measure=2.0)
               for name in names]  # fmt: skip
    run_all(guard, several, 3, outcomes.__setitem__)
    assert {name: outcome.verdict for name, outcome in outcomes.items()} == {
        "hangs": "hung", "measures": "done", "measures again": "done",
    }  # fmt: skip
    first, second = sorted(
        (outcomes[name].figures["began"], outcomes[name].figures["ended"]) for name in names[1:]
    )
    assert first[1] <= second[0]


def children() -> set[str]:
    """The processes that this one has started, and not waited for."""
    lists = Path("/proc/self/task").glob("*/children")
    return {number for each in lists for number in each.read_text().split()}


def test_nothing_is_left_of_a_stage_that_was_late(guard: Guard) -> None:
    before = children()
    assert guard.run(stage("hangs", 1.0)).verdict != "done"
    assert children() <= before


@pytest.mark.parametrize("seconds", [0.0, stages.LEAST_SECONDS / 2])
def test_a_stage_without_time_is_left_out(seconds: float) -> None:
    assert Guard(seconds).run(stage("measures")).verdict == "left out"


def test_no_stage_begins_once_all_are_ended(guard: Guard) -> None:
    guard.end()
    assert guard.run(stage("measures")).verdict == "left out"


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    text = trim("begin" + "x" * 5000 + "end")
    assert text.startswith("begin")
    assert text.endswith("end")
    assert len(text) < 2100
