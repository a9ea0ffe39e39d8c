"""Data parallelism: slices and parameters are shared out over the devices."""

from __future__ import annotations

import pytest

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers import solve
from tests.solvers.families import chain, devices
from tests.solvers.slices import sliced


def places(problem: Problem, method: str = "data_parallel") -> dict[str, str]:
    return solve(problem, method).plan.placement


# Every accelerator runs the whole model.
def test_every_device_has_a_slice_of_its_own():
    problem = Problem(sliced(1, 1), devices(1, 1, bandwidth=1e6))
    placed = places(problem)
    assert {placed[f"slice0/{op}"] for op in ("a", "b", "ga", "gb")} == {"d0"}
    assert {placed[f"slice1/{op}"] for op in ("a", "b", "ga", "gb")} == {"d1"}
    assert solve(problem, "data_parallel").makespan == pytest.approx(4, rel=1e-4)


def test_a_device_that_is_twice_as_fast_has_twice_the_slices():
    placed = places(Problem(sliced(*[1.0] * 6), devices(1, 2)))
    assert [placed[f"slice{s}/a"] for s in range(6)].count("d0") == 4


def test_larger_slices_take_longer():
    placed = places(Problem(sliced(3, 1, 1, 1), devices(1, 1)))
    assert [placed[f"slice{s}/a"] for s in range(4)] == ["d0", "d1", "d1", "d1"]


def test_updates_go_where_they_end_first_and_sums_with_them():
    placed = places(Problem(sliced(1, 1, update=1), devices(1, 1)))
    assert {placed["a"], placed["b"]} == {"d0", "d1"}
    for layer in "ab":
        assert placed[layer] == placed[f"{layer}/add1"] == placed[f"{layer}/sgd"]
    busy = places(Problem(sliced(1, 1, 1, update=1), devices(1, 1)))
    assert {busy["a"], busy["b"]} == {"d1"}


def test_a_parameter_goes_where_there_is_room():
    problem = Problem(sliced(1, 1, held=(40, 40)), devices(1, 1, memory=41))
    placed = places(problem)
    assert {placed["a"], placed["b"]} == {"d0", "d1"}


def test_a_step_that_takes_its_batch_whole_is_refused():
    with pytest.raises(SituateError, match=r"graph 'small' takes its batch whole: give --slices"):
        solve(Problem(chain(3), devices(1, 1)), "data_parallel")


# Equal shares of slices and parameters.
def test_slices_and_bytes_are_shared_equally_whatever_the_speed():
    placed = places(Problem(sliced(1, 1, 1, 1), devices(1, 2)), "fsdp")
    assert [placed[f"slice{s}/a"] for s in range(4)] == ["d0", "d1", "d0", "d1"]
    assert {placed["a"], placed["b"]} == {"d0", "d1"}


def test_fsdp_a_step_that_takes_its_batch_whole_is_refused():
    with pytest.raises(SituateError, match="takes its batch whole"):
        solve(Problem(chain(3), devices(1, 1)), "fsdp")
