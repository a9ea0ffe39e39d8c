from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.data.rules import Rules
from situate.errors import ScheduleError
from situate.report.explain import Busy, busiest, explain
from tests.report.handmade import HOSTILE, chain, schedule


def test_devices_account_for_the_makespan_and_the_peak() -> None:
    problem = chain(3)
    explained = explain(problem, schedule(problem, [0, 0, 1]))
    for device in explained.devices:
        assert device.busy + device.idle == explained.makespan
        assert device.persistent + device.tensors + device.workspace == device.peak
        assert sum(holder.size for holder in device.holders) == device.peak
    first = explained.devices[0]
    assert (first.ops, first.busy, first.sending, first.receiving) == (2, 2, 1, 0)


def test_blocking_transfers_leave_no_idle_time() -> None:
    problem = chain(2)
    blocking = Problem(
        problem.graph, Cluster("b", problem.cluster.devices, problem.cluster.links, "blocking")
    )
    explained = explain(blocking, schedule(blocking, [0, 1]))
    assert [device.idle for device in explained.devices] == [1, 1]
    assert [device.busy for device in explained.devices] == [1, 1]


def test_the_costliest_transfers_come_first_with_what_they_queued() -> None:
    problem = chain(3, bandwidth=50)
    (first, second) = explain(problem, schedule(problem, [0, 1, 0])).transfers
    assert (first.tensor, first.source, first.target) == ("t:op0", "gpu0", "gpu1")
    assert (first.size, first.seconds, first.queued, first.start) == (100, 2, 0, 1)
    assert second.seconds == 2


def test_a_plan_that_fits_needs_no_relaxation() -> None:
    explained = explain(chain(3), schedule(chain(3), [0, 0, 1]))
    assert explained.feasible
    assert explained.overflows == {}
    assert explained.relaxation is None


def test_a_plan_that_does_not_fit_says_by_how_much_where_and_what_would_do() -> None:
    problem = chain(3, memory=200)
    explained = explain(problem, schedule(problem, [0, 0, 0]))
    assert not explained.feasible
    assert explained.overflows == {"gpu0": 31}
    device = explained.devices[0]
    assert (device.over, device.peak_time) == (31, 1)
    assert [holder.name for holder in device.holders[:2]] == ["t:op0", "t:op1"]
    relaxation = explained.relaxation
    assert relaxation is not None
    assert relaxation.memory == {"gpu0": 231}
    assert relaxation.factor == pytest.approx(231 / 200)
    assert (relaxation.held, relaxation.room) == (30, 400)


def test_the_relaxed_capacity_is_the_smallest_that_fits() -> None:
    needed = explain(chain(3, memory=200), schedule(chain(3), [0, 0, 0])).relaxation
    assert needed is not None
    size = needed.memory["gpu0"]
    for memory, fits in ((size, True), (size - 1, False)):
        problem = chain(3, memory=memory)
        assert explain(problem, schedule(problem, [0, 0, 0])).feasible == fits


def test_it_becomes_json_with_any_names() -> None:
    problem = chain(names=HOSTILE)
    explained = explain(problem, schedule(problem, [0, 1] * 4))
    decoded = msgspec.json.decode(msgspec.json.encode(explained))
    assert decoded["critical_path"]["elements"][0]["name"] == HOSTILE[0]
    assert np.isclose(decoded["makespan"], explained.makespan)


def test_a_schedule_that_never_ends_is_an_error() -> None:
    plan = replace(schedule(chain(1), [0]), makespan=math.inf)
    with pytest.raises(ScheduleError, match="never ends"):
        explain(chain(1), plan)


# Devices and channels that a step keeps busy in pipelined operation.
def test_the_busiest_comes_first_and_is_the_time_between_steps() -> None:
    problem = chain(3, bandwidth=25)
    plan = schedule(problem, [0, 1, 1])
    assert busiest(problem, plan) == (
        Busy("channel", "gpu0->gpu1", 4),
        Busy("device", "gpu1", 2),
        Busy("device", "gpu0", 1),
    )
    assert busiest(problem, plan)[0].seconds == plan.period(problem)


def test_channels_without_contention_set_no_limit() -> None:
    problem = chain(3, bandwidth=25, rules="doppler")
    plan = schedule(problem, [0, 1, 1])
    assert {busy.kind for busy in busiest(problem, plan)} == {"device"}
    assert busiest(problem, plan)[0].seconds == plan.period(problem)


def test_where_devices_run_calls_channels_set_no_limit() -> None:
    problem = chain(3, bandwidth=25, rules=Rules("calls", "atomic", memory="persistent"))
    plan = schedule(problem, [0, 1, 1])
    assert {busy.kind for busy in busiest(problem, plan)} == {"device"}
    assert busiest(problem, plan)[0].seconds == plan.period(problem)
