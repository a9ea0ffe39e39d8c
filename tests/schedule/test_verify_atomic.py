"""Schedules under atomic rules: right ones pass, each kind of wrong one does not."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.errors import ScheduleError
from situate.schedule.schedule import Schedule
from situate.simulation.atomic import schedule_calls
from tests.oracle.problems import random_decision, random_problem


def _problem() -> Problem:
    """a, b in a call on x; c in a call on y; d on a CPU. p goes x to y, q from y to the CPU."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "abcd")
    tensors = (Tensor("p", 1, 0, (2,), seconds=2.0), Tensor("q", 2, 0, (3,), seconds=3.0))
    devices = (Device("x"), Device("y"), Device("cpu", kind="cpu"))
    cluster = Cluster("c", devices, (Link("*", "*", 1.0),))
    return Problem(Graph("g", ops, tensors), cluster, rules=RULES["dnn-partitioning"])


def _schedule(problem: Problem) -> Schedule:
    return schedule_calls(problem, np.array([0, 0, 1, 2], np.int32))


def _rejects(match: str, **changes: Any) -> None:
    problem = _problem()
    schedule = _schedule(problem)
    schedule.verify(problem)
    with pytest.raises(ScheduleError, match=match):
        replace(schedule, **changes).verify(problem)


def _changed(array: np.ndarray, index: int, change: float) -> np.ndarray:
    copy = array.copy()
    copy[index] += change
    return copy


def test_calls_worked_out_by_hand() -> None:
    """x: a, b, send p until 4; y: receive p, c, send q until 10; the CPU: d until 11."""
    schedule = _schedule(_problem())
    assert schedule.start.tolist() == [0, 1, 6, 10]
    assert schedule.transfer_start.tolist() == [2, 4, 7]
    assert schedule.makespan == 11
    assert schedule.busy(_problem()).tolist() == [4, 6, 1]
    assert schedule.period(_problem()) == 6


def test_a_transfer_that_takes_no_time_is_sent_and_received_at_one_instant() -> None:
    """The sums of a call's ops, in one order and in another, would differ in their last bit."""
    seconds = (0.1, 0.3, 0.1, 0.1, 0.3)
    ops = tuple(Op(f"op{i}", seconds={"*": taken}) for i, taken in enumerate(seconds))
    tensors = (Tensor("p", 0, 1, (1,), seconds=0.0), Tensor("q", 2, 1, (4,), seconds=0.0))
    devices = tuple(Device(f"acc{i}") for i in range(3))
    cluster = Cluster("c", devices, (Link("*", "*", 1.0),))
    problem = Problem(Graph("g", ops, tensors), cluster, rules=RULES["dnn-partitioning"])
    schedule_calls(problem, np.array([0, 1, 1, 1, 2], np.int32)).verify(problem)


@pytest.mark.parametrize("sent", [0.1, 0.2, 0.3, 0.7])
def test_a_signal_beside_a_transfer_leaves_when_its_call_ends(sent: float) -> None:
    """Sums of times in one order are exact, from a call that does not begin at 0 too."""
    for a, b, received in product((0.1, 0.2, 0.3, 0.7), repeat=3):
        ops = tuple(Op(f"op{i}", seconds={"*": s}) for i, s in enumerate((a, b, 1.0, 1.0)))
        tensors = (
            Tensor("p", 0, 1, (1,), seconds=received),
            Tensor("q", 1, 1, (2,), seconds=sent),
        )
        cluster = Cluster("c", tuple(Device(f"acc{i}") for i in range(4)), (Link("*", "*", 1.0),))
        graph = Graph("g", ops, tensors, control=((1, 3),))
        problem = Problem(graph, cluster, rules=RULES["dnn-partitioning"])
        schedule_calls(problem, np.arange(4, dtype=np.int32)).verify(problem)


def _signal(synchronisation: float = 0.5) -> Problem:
    """a on x; b, which waits for it, on y, and c on a CPU; d on another CPU waits for c."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "abcd")
    devices = (Device("x"), Device("y"), Device("cpu0", kind="cpu"), Device("cpu1", kind="cpu"))
    cluster = Cluster("c", devices, (Link("*", "*", 1.0),), synchronisation=synchronisation)
    graph = Graph("g", ops, control=((0, 1), (0, 2), (2, 3)))
    return Problem(graph, cluster, rules=RULES["dnn-partitioning"])


def test_a_signal_takes_its_time_and_occupies_no_call() -> None:
    problem = _signal()
    schedule = schedule_calls(problem, np.arange(4, dtype=np.int32))
    schedule.verify(problem)
    assert schedule.busy(problem).tolist() == [1, 1, 1, 1]
    assert schedule.start.tolist() == [0, 1.5, 1.5, 3]
    assert schedule.transfer_start.tolist() == [1, 1, 2.5]
    assert schedule.transfer_end.tolist() == [1.5, 1.5, 3]
    assert schedule.makespan == 4


def test_a_signal_that_takes_no_time_is_not_listed() -> None:
    schedule = schedule_calls(_signal(0), np.arange(4, dtype=np.int32))
    assert (len(schedule.tensor), schedule.makespan) == (0, 3)


def test_a_signal_that_leaves_before_its_call_ends() -> None:
    problem = _signal()
    schedule = schedule_calls(problem, np.arange(4, dtype=np.int32))
    start = _changed(schedule.transfer_start, 0, -0.25)
    end = _changed(schedule.transfer_end, 0, -0.25)
    with pytest.raises(ScheduleError, match=r"edges of op 'a' to 'y' leaves at 0\.75, not at 1"):
        replace(schedule, transfer_start=start, transfer_end=end).verify(problem)


def test_a_call_before_a_signal_arrives() -> None:
    problem = _signal()
    schedule = schedule_calls(problem, np.arange(4, dtype=np.int32))
    start, end = _changed(schedule.start, 1, -0.25), _changed(schedule.end, 1, -0.25)
    with pytest.raises(ScheduleError, match="op 'b' or its call starts before op 'a' is over"):
        replace(schedule, start=start, end=end).verify(problem)


def test_a_makespan_that_is_not_the_last_end() -> None:
    _rejects("makespan is 11.000000001, but the last end is 11.0", makespan=11.000000001)


@pytest.mark.parametrize("chunk", range(5))
def test_every_valid_split_passes_and_no_other(chunk: int) -> None:
    for seed in range(100 * chunk, 100 * (chunk + 1)):
        problem = replace(random_problem(seed), rules=RULES["dnn-partitioning"])
        schedule = schedule_calls(problem, random_decision(problem, seed).placement)
        if np.isfinite(schedule.makespan):
            schedule.verify(problem, allow_overflow=True)
        else:
            with pytest.raises(ScheduleError, match="wait for one another"):
                schedule.verify(problem, allow_overflow=True)


def test_a_wrong_duration() -> None:
    _rejects("op 'd' takes 2.0, not 1.0", end=_changed(_schedule(_problem()).end, 3, 1))


def test_a_transfer_listed_once_too_little() -> None:
    schedule = _schedule(_problem())
    names = ("tensor", "source", "target", "transfer_start", "transfer_end")
    _rejects("once for each accelerator", **{n: getattr(schedule, n)[1:] for n in names})
    _rejects("'q' to 'cpu' is missing", **{n: getattr(schedule, n)[:-1] for n in names})


def test_a_transfer_from_elsewhere() -> None:
    _rejects("'q' to 'cpu' leaves from 'x'", source=np.array([0, 0, 0], np.int32))


def test_two_things_at_once_in_a_call() -> None:
    schedule = _schedule(_problem())
    start, end = _changed(schedule.start, 1, -0.5), _changed(schedule.end, 1, -0.5)
    _rejects("op 'a' and op 'b' are out of turn in their call", start=start, end=end)


def test_a_call_that_sends_before_it_computes() -> None:
    schedule = _schedule(_problem())
    start, end = schedule.start.copy(), schedule.end.copy()
    start[:2], end[:2] = [2, 3], [3, 4]
    _rejects(
        "out of turn",
        start=start,
        end=end,
        transfer_start=_changed(schedule.transfer_start, 0, -2),
        transfer_end=_changed(schedule.transfer_end, 0, -2),
    )


def test_a_call_that_takes_longer_than_its_load() -> None:
    schedule = _schedule(_problem())
    _rejects(
        "the call of 'x' does not take its load, 4.0",
        transfer_start=_changed(schedule.transfer_start, 0, 1),
        transfer_end=_changed(schedule.transfer_end, 0, 1),
    )


def test_a_call_before_its_input() -> None:
    schedule = _schedule(_problem())
    start, end = schedule.start.copy(), schedule.end.copy()
    start[2:] -= 1
    end[2:] -= 1
    moved = np.array([0.0, -1, -1])
    _rejects(
        "op 'c' or its call starts before op 'b' is over",
        start=start,
        end=end,
        transfer_start=schedule.transfer_start + moved,
        transfer_end=schedule.transfer_end + moved,
    )


def test_a_cpu_op_before_its_input() -> None:
    schedule = _schedule(_problem())
    start, end = _changed(schedule.start, 3, -1), _changed(schedule.end, 3, -1)
    _rejects("op 'd' or its call starts before op 'c' is over", start=start, end=end)
