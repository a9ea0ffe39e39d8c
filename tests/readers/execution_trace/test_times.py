"""Execution traces joined with Kineto traces."""

from __future__ import annotations

import pytest

from situate.errors import ReadError
from situate.readers.execution_trace import times
from situate.readers.execution_trace.nodes import nodes
from situate.readers.kineto import profile
from tests.readers.traces import KERNELS, RELU, chrome_trace, event, execution_trace, node


def joined(arguments: list[dict], *events: dict) -> dict[int, list[float]]:
    """By id of a node, when its calls began, in microseconds after the earliest."""
    result = times.calls(nodes(execution_trace(*arguments)), profile(chrome_trace(*events)))
    return {id: [call.start for call in calls] for id, calls in result.items()}


def recorded(name: str, start: float, record: int) -> dict:
    return event(name, start, 5, args={"Record function id": record})


def test_the_number_of_the_record_function_joins():
    events = recorded("aten::relu", 50, 1004), recorded("aten::linear", 10, 1003)
    assert joined(RELU, *events) == {3: [0], 4: [40]}


def test_a_number_joins_calls_of_one_name_only():
    events = recorded("aten::add", 50, 1004), recorded("aten::linear", 10, 1003)
    assert joined(RELU, *events) == {3: [0]}


def test_without_numbers_the_order_of_the_names_joins():
    assert joined(RELU, *KERNELS) == {3: [0], 4: [30]}


def test_every_step_of_the_profile_is_a_measurement():
    names = ["aten::relu", "aten::linear", "aten::relu", "aten::add", "aten::linear", "aten::relu"]
    events = [event(name, 10 * i, 5) for i, name in enumerate(names)]
    assert joined(RELU, *events) == {3: [10, 40], 4: [20, 50]}


def test_no_call_is_in_two_steps():
    twice = [node(3, "aten::relu"), node(4, "aten::relu")]
    events = [event("aten::relu", 10 * i, 5) for i in range(5)]
    assert joined(twice, *events) == {3: [0, 20], 4: [10, 30]}


def test_every_thread_is_looked_for_by_itself():
    other = node(9, "aten::mul", thread=2)
    events = [event("aten::mul", 15, 1, tid=8), *KERNELS]
    assert joined([*RELU, other], *events) == {3: [0], 4: [30], 9: [5]}


@pytest.mark.parametrize(
    "events",
    [KERNELS[:3], [event("aten::relu", 0, 1), event("aten::linear", 2, 1)]],
    ids=["missing", "another order"],
)
def test_traces_of_different_runs_are_refused(events):
    with pytest.raises(
        ReadError, match=r"not of the same run: the 2 calls of thread 1, .*: record"
    ):
        joined(RELU, *events)


def test_a_time_is_the_median_of_the_measurements():
    events = [event("aten::relu", 100 * i, took) for i, took in enumerate([9, 1, 2])]
    trace = profile(chrome_trace(*events))
    assert times.seconds(trace.calls, trace, is_on_gpu=False) == {"*": pytest.approx(2e-6)}


def test_a_call_with_kernels_takes_their_time_and_runs_on_accelerators_only():
    trace = profile(chrome_trace(*KERNELS))
    assert times.seconds(trace.calls[:1], trace, is_on_gpu=False) == {
        "accelerator": pytest.approx(40e-6)
    }


def test_a_call_on_a_gpu_without_kernels_takes_no_time():
    trace = profile(chrome_trace(event("aten::view", 0, 9)))
    assert times.seconds(trace.calls, trace, is_on_gpu=True) == {"accelerator": 0}
