"""Contiguous stages, each with its backward pass."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.topology import folded_order
from situate.solvers import solve
from tests.solvers.families import chain, devices
from tests.solvers.training import LAYERS, gpus, training


@pytest.mark.parametrize("memory", [(60, 40), (40, 60), (40, 40, 40), (1000,)])
def test_stages_are_contiguous_and_fit(memory: tuple[int, ...]) -> None:
    problem = training(gpus(*memory, cpu=True))
    result = solve(problem, "pipeline", evaluations=1000)
    assert result.feasible
    along = result.placement[folded_order(problem)]
    assert np.count_nonzero(np.diff(along)) < len(memory)
    assert "cpu" not in result.devices_used


def test_a_backward_op_is_in_the_stage_of_its_forward_op() -> None:
    placement = solve(training(gpus(60, 40)), "pipeline", evaluations=1000).placement
    apart = sum(placement[layer] != placement[-1 - layer] for layer in range(LAYERS))
    assert apart <= 1


def test_what_lies_between_two_stages_moves_as_long_as_that_is_better() -> None:
    problem = Problem(chain(9), devices(1, 2))
    assert solve(problem, "pipeline", evaluations=1000).makespan == 9


def test_the_budget_ends_it() -> None:
    problem = training(gpus(60, 40))
    assert solve(problem, "pipeline", evaluations=6).evaluations <= 10


def test_the_device_that_is_listed_last_may_hold_the_first_stage() -> None:
    """The first layer fits on the larger device alone."""
    whole = training(gpus(55, 100))
    tensors = (replace(whole.graph.tensors[0], size=60), *whole.graph.tensors[1:])
    problem = Problem(Graph("heavy head", whole.graph.ops, tensors), whole.cluster)
    result = solve(problem, "pipeline", evaluations=1000)
    assert result.feasible
    assert result.placement[0] == 1
    assert result.placement[LAYERS - 1] == 0


def test_devices_that_are_no_help_stay_empty() -> None:
    """A byte takes longer from one to the other than all ops on one."""
    problem = Problem(chain(6), devices(1, 2, bandwidth=0.01))
    assert solve(problem, "pipeline", evaluations=1000).makespan == 6
