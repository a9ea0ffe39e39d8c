"""A schedule is verified from its own times: right ones pass, each kind of wrong one does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES, Rules
from situate.errors import ScheduleError
from situate.schedule.schedule import Schedule
from tests.oracle.problems import random_decision, random_problem
from tests.oracle.simulator import simulate

PLACEMENT = [0, 0, 1, 1]


def _problem(rules: str | Rules = "situate", **changes: Any) -> Problem:
    """a, b on x send p (4 bytes), q (2 bytes) over one byte per second to c, d on y."""
    pin = changes.pop("pin", None)
    memory = changes.pop("memory", None)
    ops = (
        Op("a", seconds={"*": 1.0}, persistent=1, group="ab"),
        Op("b", seconds={"*": 2.0}, workspace=3, group="ab"),
        Op("c", seconds={"*": 3.0}, device=pin),
        Op("d", seconds={"y": 4.0, "z": 4.0}),
    )
    tensors = (
        Tensor("p", 0, 4, (1, 2)),
        Tensor("q", 1, 2, (3,)),
        Tensor("r", 2, 5, (3,), output=True),
    )
    devices = tuple(Device(name, memory=memory) for name in "xyz")
    cluster = Cluster("c", devices, (Link("*", "*", 1.0),), **changes)
    graph = Graph("g", ops, tensors, control=((0, 3),))
    return Problem(graph, cluster, rules=RULES[rules] if isinstance(rules, str) else rules)


def _schedule(problem: Problem, decoder: str = "eager") -> Schedule:
    return simulate(problem, PLACEMENT, [4, 3, 2, 1], decoder=decoder)  # type: ignore[arg-type]


def _changed(array: np.ndarray, index: int, value: float) -> np.ndarray:
    copy = array.copy()
    copy[index] = value
    return copy


def _rejects(problem: Problem, schedule: Schedule, match: str, **changes: Any) -> None:
    """`schedule` passes; with `changes` it does not, for one reason, said in one line."""
    schedule.verify(problem, allow_overflow=True)
    with pytest.raises(ScheduleError, match=match) as error:
        replace(schedule, **changes).verify(problem)
    assert "\n" not in str(error.value)


@settings(max_examples=300, deadline=None)
@given(st.integers(10**6, 10**9), st.sampled_from(["eager", "serial"]))
def test_what_the_oracle_makes_passes(seed: int, decoder: Any) -> None:
    problem = random_problem(seed)
    drawn = random_decision(problem, seed)
    schedule = simulate(problem, drawn.placement, drawn.priority, drawn.transfer_priority, decoder)
    schedule.verify(problem, allow_overflow=True)


def test_the_oracle_on_a_schedule_worked_out_by_hand() -> None:
    schedule = _schedule(_problem())
    assert schedule.start.tolist() == [0, 1, 5, 8]
    assert schedule.end.tolist() == [1, 3, 8, 12]
    assert schedule.transfer_start.tolist() == [1, 5]
    assert schedule.transfer_end.tolist() == [5, 7]
    assert schedule.makespan == 12
    assert schedule.peak.tolist() == [10, 11, 0]
    assert schedule.sequence.tolist() == [0, 4, 1, 5, 2, 3]


def test_the_oracle_on_a_blocking_schedule_worked_out_by_hand() -> None:
    schedule = _schedule(_problem("regal"))
    assert schedule.start.tolist() == [0, 1, 7, 12]
    assert schedule.transfer_start.tolist() == [3, 10, 12]
    assert schedule.transfer_end.tolist() == [7, 12, 12]
    assert schedule.sequence.tolist() == [0, 1, 4, 2, 5, 6, 3]
    assert schedule.makespan == 16


def test_an_array_of_the_wrong_length() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    _rejects(problem, schedule, r"start has shape \(3,\), not \(4,\)", start=schedule.start[1:])


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_times_that_cannot_be(value: float) -> None:
    problem = _problem()
    schedule = _schedule(problem)
    start = _changed(schedule.start, 0, value)
    _rejects(problem, schedule, "start holds a time", start=start)


@pytest.mark.parametrize("value", [-1, 3])
def test_a_device_that_does_not_exist(value: int) -> None:
    problem = _problem()
    schedule = _schedule(problem)
    placement = _changed(schedule.placement, 2, value)
    _rejects(problem, schedule, r"placement holds an index outside 0\.\.2", placement=placement)


def test_an_op_on_a_device_that_cannot_run_it() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    placement = _changed(schedule.placement, 3, 0)
    _rejects(problem, schedule, "op 'd' cannot run on 'x'", placement=placement)


def test_a_split_group() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    placement = _changed(schedule.placement, 1, 1)
    _rejects(problem, schedule, "group 'ab' is split: op 'a' runs on 'x'", placement=placement)


def test_a_broken_pin() -> None:
    problem = _problem(pin="y")
    schedule = _schedule(problem)
    placement = _changed(schedule.placement, 2, 2)
    _rejects(problem, schedule, "op 'c' is pinned to 'y', but runs on 'z'", placement=placement)


def test_a_wrong_duration() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    end = _changed(schedule.end, 3, 11)
    _rejects(problem, schedule, r"op 'd' takes 3\.0, not 4\.0", end=end)


def test_an_op_before_its_remote_input() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    start, end = _changed(schedule.start, 2, 4), _changed(schedule.end, 2, 7)
    _rejects(
        problem, schedule, r"op 'c' starts at 4\.0, before its input 'p'", start=start, end=end
    )


def test_an_op_before_its_local_input() -> None:
    problem = _problem("doppler")
    schedule = _schedule(problem)
    start, end = _changed(schedule.start, 3, 7), _changed(schedule.end, 3, 11)
    _rejects(problem, schedule, "op 'd' starts at 7.0, before its input 'r'", start=start, end=end)


def test_an_op_before_a_signal() -> None:
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 1.0}))
    cluster = Cluster("c", (Device("x"), Device("y")), (Link("*", "*", 1.0),), synchronisation=5.0)
    problem = Problem(Graph("g", ops, control=((0, 1),)), cluster)
    schedule = simulate(problem, [0, 1], [0, 0])
    start, end = _changed(schedule.start, 1, 5), _changed(schedule.end, 1, 6)
    match = r"op 'b' starts at 5\.0, before its input control edges of op 'a' arrives at 6\.0"
    _rejects(problem, schedule, match, start=start, end=end)


def test_two_ops_at_once_on_a_device() -> None:
    graph = Graph("g", (Op("a", seconds={"*": 2.0}), Op("b", seconds={"*": 2.0})))
    problem = Problem(graph, Cluster.identical(1))
    schedule = simulate(problem, [0, 0], [1, 0])
    start, end = _changed(schedule.start, 1, 1), _changed(schedule.end, 1, 3)
    _rejects(problem, schedule, "op 'a' and op 'b' overlap on device 'd0'", start=start, end=end)


def _without(schedule: Schedule, k: int) -> dict[str, np.ndarray]:
    names = ("tensor", "source", "target", "transfer_start", "transfer_end")
    return {name: np.delete(getattr(schedule, name), k) for name in names}


def _with(schedule: Schedule, *row: float) -> dict[str, np.ndarray]:
    names = ("tensor", "source", "target", "transfer_start", "transfer_end")
    arrays = {name: getattr(schedule, name) for name in names}
    return {
        name: np.append(array, np.array(value, array.dtype))
        for (name, array), value in zip(arrays.items(), row, strict=True)
    }


def test_a_missing_transfer() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    changes = _without(schedule, 0)
    _rejects(problem, schedule, "the transfer of 'p' to 'y' is missing", **changes)


def test_a_missing_signal_that_takes_time() -> None:
    problem = _problem(synchronisation=1.0)
    schedule = _schedule(problem)
    changes = _without(schedule, int(np.flatnonzero(schedule.tensor == 3)[0]))
    match = "the transfer of control edges of op 'a' to 'y' is missing"
    _rejects(problem, schedule, match, **changes)


def test_a_transfer_that_nobody_needs() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    changes = _with(schedule, 0, 0, 2, 1, 5)
    _rejects(problem, schedule, "the transfer of 'p' to 'z' is not needed", **changes)


def test_a_transfer_made_twice() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    changes = _with(schedule, 0, 0, 1, 7, 11)
    _rejects(problem, schedule, "the transfer of 'p' to 'y' happens more than once", **changes)


def test_a_transfer_from_elsewhere() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    source = _changed(schedule.source, 0, 2)
    _rejects(problem, schedule, "the transfer of 'p' to 'y' leaves from 'z'", source=source)


def test_a_transfer_before_its_producer_ends() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    _rejects(
        problem,
        schedule,
        "the transfer of 'p' to 'y' starts before op 'a' ends",
        transfer_start=_changed(schedule.transfer_start, 0, 0),
        transfer_end=_changed(schedule.transfer_end, 0, 4),
    )


def test_a_transfer_that_takes_too_little() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    transfer_end = _changed(schedule.transfer_end, 0, 4.5)
    match = r"the transfer of 'p' to 'y' takes 3\.5, not 4\.0"
    _rejects(problem, schedule, match, transfer_end=transfer_end)


def test_two_transfers_at_once_on_a_channel() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    _rejects(
        problem,
        schedule,
        "'p' to 'y' and the transfer of 'q' to 'y' overlap on channel 'x->y'",
        transfer_start=_changed(schedule.transfer_start, 1, 3),
        transfer_end=_changed(schedule.transfer_end, 1, 5),
    )


def test_without_contention_transfers_may_overlap_but_not_wait() -> None:
    problem = _problem("doppler")
    schedule = _schedule(problem)
    assert schedule.transfer_start.tolist() == [1, 3]
    _rejects(
        problem,
        schedule,
        "the transfer of 'q' to 'y' could start at 3.0 but waits",
        transfer_start=_changed(schedule.transfer_start, 1, 4),
        transfer_end=_changed(schedule.transfer_end, 1, 6),
    )


def _three_transfers() -> tuple[Problem, Schedule]:
    """Two ops a, b on d0 send 3 and 2 bytes to d1; a third op holds the channel until 9."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "abcw")
    tensors = (Tensor("p", 0, 8, (3,)), Tensor("q", 1, 2, (3,)), Tensor("r", 2, 2, (3,)))
    cluster = Cluster("c", (Device("x"), Device("y")), (Link("*", "*", 1.0),))
    problem = Problem(Graph("g", ops, tensors), cluster)
    return problem, simulate(problem, [0, 0, 0, 1], [4, 3, 2, 1])


@pytest.mark.parametrize(
    "sequence", [[0, 1, 4, 2, 5, 6], [0, 1, 4, 2, 5, 6, 6], [0, 1, 4, 2, 5, 6, 7], [-1, 0, 1, 2]]
)
def test_a_sequence_of_other_items(sequence: list[int]) -> None:
    problem = _problem("regal")
    changed = np.array(sequence, np.int32)
    _rejects(problem, _schedule(problem), "sequence does not hold every", sequence=changed)


@pytest.mark.parametrize(
    ("sequence", "match"),
    [
        ([4, 0, 1, 2, 5, 6, 3], "the transfer of 'p' to 'y' before op 'a'"),
        ([0, 1, 2, 4, 5, 6, 3], "op 'c' before its input 'p' is there"),
        ([0, 1, 4, 2, 5, 3, 6], "op 'd' before its input control edges of op 'a' is there"),
        ([0, 1, 4, 5, 2, 6, 3], "the transfer of 'q' to 'y' before op 'c', which starts earlier"),
    ],
)
def test_a_sequence_that_is_not_the_schedules(sequence: list[int], match: str) -> None:
    problem = _problem("regal")
    changed = np.array(sequence, np.int32)
    _rejects(problem, _schedule(problem), match, sequence=changed)


def test_where_transfers_overlap_all_items_start_in_their_sequence() -> None:
    problem = _problem()
    changed = np.array([0, 1, 4, 5, 2, 3], np.int32)
    schedule = _schedule(problem)
    schedule.verify(problem)
    replace(schedule, sequence=changed).verify(problem)


def test_a_channel_that_serves_the_later_request_first() -> None:
    problem, schedule = _three_transfers()
    assert schedule.transfer_start.tolist() == [1, 9, 11]
    _rejects(
        problem,
        schedule,
        "'q' to 'y' was requested before the transfer of 'r' to 'y', which goes first",
        transfer_start=np.array([1.0, 11, 9]),
        transfer_end=np.array([9.0, 13, 11]),
    )


def test_a_channel_that_idles_while_a_transfer_waits() -> None:
    problem, schedule = _three_transfers()
    _rejects(
        problem,
        schedule,
        "'r' to 'y' could start at 11.0 but waits",
        transfer_start=np.array([1.0, 9, 12]),
        transfer_end=np.array([9.0, 11, 14]),
        start=_changed(schedule.start, 3, 14),
        end=_changed(schedule.end, 3, 15),
    )


@pytest.mark.parametrize(("op", "start", "device"), [(1, 2, "x"), (2, 9, "y")])
def test_a_blocking_transfer_while_its_sender_or_receiver_computes(
    op: int, start: float, device: str
) -> None:
    problem = _problem("regal")
    schedule = _schedule(problem)
    _rejects(
        problem,
        schedule,
        f"the transfer of .* overlap on device '{device}'",
        start=_changed(schedule.start, op, start),
        end=_changed(schedule.end, op, start + problem.seconds[op, 0]),
    )


def test_a_signal_that_waits() -> None:
    problem = _problem(Rules("drawn", "blocking"), synchronisation=1.0)
    schedule = _schedule(problem)
    k = int(np.flatnonzero(schedule.tensor == 3)[0])
    _rejects(
        problem,
        schedule,
        "control edges of op 'a' to 'y' could start at 1.0 but waits",
        transfer_start=_changed(schedule.transfer_start, k, 2),
        transfer_end=_changed(schedule.transfer_end, k, 3),
    )


def test_a_wrong_makespan() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    _rejects(problem, schedule, r"makespan is 11\.0, but the last end is 12\.0", makespan=11.0)


@pytest.mark.parametrize(
    "rules",
    ["situate", "regal", "doppler", Rules("drawn", "overlapped", memory="persistent")],
    ids=["situate", "regal", "doppler", "persistent"],
)
def test_a_wrong_peak(rules: str | Rules) -> None:
    problem = _problem(rules)
    schedule = _schedule(problem)
    peak = _changed(schedule.peak, 0, schedule.peak[0] - 1)
    _rejects(problem, schedule, "peak memory of 'x' is", peak=peak)


def test_a_device_that_overflows() -> None:
    problem = _problem(memory=10)
    schedule = _schedule(problem)
    _rejects(problem, schedule, "device 'y' needs 1 bytes more than its 10")
    assert schedule.overflow(problem).tolist() == [0, 1, 0]
    assert not schedule.feasible(problem)


def test_what_fits_is_feasible() -> None:
    problem = _problem(memory=11)
    schedule = _schedule(problem)
    schedule.verify(problem)
    assert schedule.feasible(problem)


def test_names_cannot_break_the_line() -> None:
    graph = Graph("g", (Op("a\n\x1b[31m", seconds={"*": 2.0}),))
    problem = Problem(graph, Cluster.identical(1))
    schedule = simulate(problem, [0], [0])
    _rejects(problem, schedule, r"op 'a\\n\\x1b\[31m' takes", end=schedule.end + 1)


def test_an_overlapped_period_is_that_of_the_busiest_device_or_channel() -> None:
    problem = _problem()
    schedule = _schedule(problem)
    assert schedule.busy(problem).tolist() == [3, 7, 0]
    channels = dict(zip(problem.cluster.channels, schedule.channel_busy(problem), strict=True))
    assert channels["x->y"] == 6
    assert sum(channels.values()) == 6
    assert schedule.period(problem) == 7


def test_a_busy_channel_sets_the_period_unless_there_is_no_contention() -> None:
    problem, schedule = _three_transfers()
    assert schedule.busy(problem).tolist() == [3, 1]
    assert schedule.period(problem) == 12
    assert schedule.period(replace(problem, rules=RULES["doppler"])) == 3


def test_blocking_transfers_keep_both_ends_busy() -> None:
    problem = _problem("regal", synchronisation=1.0)
    schedule = _schedule(problem)
    assert schedule.busy(problem).tolist() == [3 + 9, 7 + 9, 0]


def test_bytes_beyond_capacity_add_up_beyond_64_bits() -> None:
    problem = _problem(memory=1)
    schedule = replace(_schedule(problem), peak=np.full(3, 2**62))
    assert schedule.excess(problem) == 3 * (2**62 - 1)


@pytest.mark.parametrize("figure", ["busy", "channel_busy", "period", "overflow", "feasible"])
def test_a_figure_of_another_problem_is_refused(figure: str) -> None:
    """Zeros, or an error from inside numpy."""
    schedule = _schedule(_problem())
    other = Problem(Graph("o", (Op("a", seconds={"*": 1.0}),)), Cluster.identical(2))
    with pytest.raises(ScheduleError, match="4 ops on 3 devices, and the problem has 1 on 2"):
        getattr(schedule, figure)(other)
