"""Seconds and workspace of ops, from the records of steps."""

from __future__ import annotations

import pytest

from situate.data.costs import Timing
from situate.data.graph import Graph, Op, Tensor
from situate.profiling.timings import contention, timings, workspace
from situate.runtime.device import StepRecord

GRAPH = Graph(
    "g",
    (
        Op("x", "input"),
        Op("a", "aten.mm", signature="mm"),
        Op("b", "aten.mm", signature="mm"),
        Op("c", "aten.relu", signature="relu"),
    ),
)


def step(*seconds: float) -> StepRecord:
    """Ops 0 to 3 took so long, and number 4, behind the graph's, a day."""
    ends = {op: 100.0 + s for op, s in enumerate((*seconds, 86400.0))}
    return StepRecord(0.0, 1.0, 0.0, dict.fromkeys(ends, 100.0), ends)


# Timings and contention.
def test_a_signature_takes_the_mean_of_its_ops_medians() -> None:
    steps = [step(0, 1, 3, 5), step(0, 2, 4, 6), step(0, 900, 900, 900)]
    timings_found = timings(GRAPH, steps, 0.0)
    assert timings_found.keys() == {"mm", "relu"}
    assert (timings_found["mm"].median, timings_found["relu"].median) == (3.0, 6.0)
    assert timings_found["mm"].count == 6
    assert timings_found["mm"].low < 3.0 < timings_found["mm"].high


def test_the_sum_over_all_ops_is_that_of_the_step() -> None:
    timings_found = timings(GRAPH, [step(0, 1, 3, 5)], 0.0)
    assert sum(timings_found[op.signature].median for op in GRAPH.ops if op.signature) == 9.0


def test_the_clock_itself_is_taken_off_and_nothing_takes_less_than_nothing() -> None:
    timings_found = timings(GRAPH, [step(0, 1, 3, 0.1)], 0.5)
    assert (timings_found["mm"].median, timings_found["relu"].median) == (1.5, 0.0)


def took(seconds: float) -> Timing:
    return Timing(seconds, seconds, seconds, 1)


def test_contention_is_a_ratio_of_sums_by_class() -> None:
    alone = {"mm": took(1.0), "relu": took(2.0)}
    together = {"mm": took(1.5), "relu": took(1.0)}
    assert contention(GRAPH, alone, together) == {
        "matmul": pytest.approx(1.5),
        "elementwise": 1.0,
    }


def test_a_class_that_takes_no_time_has_no_contention() -> None:
    assert contention(GRAPH, {"mm": took(0.0)}, {"mm": took(1.0)}) == {}


CONVOLUTION_GRAPH = Graph(
    "g",
    (Op("a", signature="conv"), Op("b", signature="conv"), Op("c", signature="relu"), Op("d")),
    (Tensor("a:0", 0, 100, (1,)), Tensor("b:0", 1, 100, (2,)), Tensor("c:0", 2, 50, (3,))),
)


def allocated(*most: int) -> StepRecord:
    return StepRecord(0.0, 1.0, 0.0, {}, {}, 0, dict(enumerate(most)))


# Workspace.
def test_workspace_is_the_allocation_beyond_an_ops_outputs() -> None:
    assert workspace(CONVOLUTION_GRAPH, allocated(130, 100, 50, 0)) == {"conv": 30}


def test_the_largest_workspace_of_a_signature_counts() -> None:
    assert workspace(CONVOLUTION_GRAPH, allocated(110, 170, 0, 0)) == {"conv": 70}


def test_ops_without_a_signature_and_marks_behind_the_ops_are_left_out() -> None:
    assert (
        workspace(CONVOLUTION_GRAPH, StepRecord(0.0, 1.0, 0.0, {}, {}, 0, {3: 900, 4: 900})) == {}
    )
