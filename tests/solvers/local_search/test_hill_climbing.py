"""`hill_climbing` as a method."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.learned.learner import Learning
from situate.solvers.local_search import hill_climbing
from tests.solvers.families import chain, devices
from tests.solvers.learning import branching, first_sixty, groups_as_asked, learnt

PROBLEM = Problem(chain(40), devices(1, 1, 2))


@pytest.mark.parametrize("seed", [0, 1])
def test_it_ends_below_the_best_of_its_first_sixty(seed):
    result = learnt("hill_climbing", seed=seed)
    assert result.value <= 0.9 * first_sixty(result)


def test_it_begins_with_a_plan_that_it_is_given():
    planned = np.arange(40, dtype=np.int32) % 3
    learning = Learning(start=lambda: planned, grouping="none")
    learner = hill_climbing.learner(PROBLEM, learning, 60, 0)
    assert learner.ask(learner.batch)[0].tolist() == planned.tolist()


def test_a_grouping_asked_for_goes_before_its_own():
    assert groups_as_asked(hill_climbing)


def test_noise_is_not_the_end_of_it():
    learning = Learning(noise=0.05)
    noisy = solve(branching(), "hill_climbing", evaluations=1200, learning=learning)
    alone = solve(branching(), "single").value
    assert noisy.value < 0.8 * alone
