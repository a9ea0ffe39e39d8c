"""Tensors take memory while they live, on every device that they are on."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec import structs

from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.rules import Rules
from situate.solvers.exact.clock import Bytes, Turns
from situate.solvers.exact.constraints import Timing
from situate.solvers.exact.lifetimes import Lifetimes, room_beside_persistent
from tests.solvers.exact.solved import least, placed
from tests.solvers.families import chain, devices, fork
from tests.solvers.programs import needs_ortools

pytestmark = needs_ortools

OVERLAPPED_STEPS = Rules("overlapped steps", "overlapped", memory="step")


def _peaks(problem: Problem, *where: int) -> list[int]:
    """The least of the largest peak, and then the peak of every device."""
    placing, sizes = placed(problem, *where), Bytes.of(problem)
    timing = Timing(placing, Turns(0.0, problem.n + len(placing.received)))
    limit = {d: placing.model.new_int_var(0, sizes.total, "") for d in range(problem.d)}
    Lifetimes(placing, timing, sizes, limit)
    most = placing.model.new_int_var(0, sizes.total, "")
    for each in limit.values():
        placing.model.add(each <= most)
    return [
        peak * sizes.unit
        for peak in least(placing, 100 * most + sum(limit.values()), *limit.values())[1:]
    ]


def _tensors(small: Graph, **changes: Any) -> Graph:
    return dataclasses.replace(
        small, tensors=tuple(structs.replace(t, **changes) for t in small.tensors)
    )


def test_an_op_holds_its_inputs_and_outputs():
    assert _peaks(Problem(chain(3, size=5), devices(1)), 0, 0, 0) == [10]


def test_workspace_comes_on_top_while_an_op_runs():
    assert _peaks(Problem(chain(3, size=5, workspace=7), devices(1)), 0, 0, 0) == [17]


def test_what_is_held_throughout_comes_on_top():
    assert _peaks(Problem(chain(3, size=5, persistent=7), devices(1)), 0, 0, 0) == [31]


def test_outputs_stay_to_the_end():
    assert _peaks(Problem(_tensors(chain(4, size=5), output=True), devices(1)), 0, 0, 0, 0) == [15]


def test_resident_tensors_take_memory_where_they_are_sent_alone():
    problem = Problem(_tensors(chain(2, size=5), resident=True), devices(1, 1))
    assert _peaks(problem, 0, 0) == [0, 0]
    assert _peaks(problem, 0, 1) == [0, 5]


@pytest.mark.parametrize("rules", ["situate", "regal", "doppler", OVERLAPPED_STEPS])
def test_a_tensor_that_is_sent_is_on_both_devices(rules):
    assert _peaks(Problem(chain(2, size=5), devices(1, 1), "memory", rules), 0, 1) == [5, 5]


def test_one_device_holds_all_branches_at_the_join():
    assert _peaks(Problem(fork(6, size=1), devices(1)), *[0] * 6) == [5]


def test_room_is_what_units_leave():
    problem = Problem(chain(3, persistent=4), devices(1, 1))
    placing, sizes = placed(problem, 0, 0, 1), Bytes.of(problem)
    free = room_beside_persistent(placing, sizes, {0: 20, 1: 20})
    assert least(placing, -free[0], free[1])[0] == -(20 - 8)
