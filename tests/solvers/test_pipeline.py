"""Contiguous stages, each with its backward pass."""

from __future__ import annotations

import numpy as np
import pytest

from situate.problem import Problem
from situate.solvers import solve
from situate.solvers.auto.fitted import folded
from tests.solvers.auto.test_fitted import LAYERS, gpus, training
from tests.solvers.families import chain, devices


@pytest.mark.parametrize("memory", [(60, 40), (40, 60), (40, 40, 40), (1000,)])
def test_stages_are_contiguous_and_fit(memory: tuple[int, ...]) -> None:
    problem = training(gpus(*memory, cpu=True))
    result = solve(problem, "pipeline", evaluations=1000)
    assert result.feasible
    along = result.placement[folded(problem)]
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
