"""The table of methods."""

from __future__ import annotations

import dataclasses

import pytest

import situate
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers import solve
from situate.solvers.learned.learner import Learning
from situate.solvers.registry import LEARNERS, METHODS, OF_SLICES, WITH_SETTINGS, WITH_WEIGHTS
from tests.solvers.families import chain, devices, fork


def test_it_is_what_users_see():
    assert situate.METHODS is METHODS
    assert [method.name for method in METHODS.values()] == list(METHODS)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_method_has_its_function_and_says_what_it_is(method):
    assert callable(method.function())
    assert " " in method.summary
    assert not method.summary.endswith(".")


def test_methods_that_learn_are_told_of_no_costs():
    assert set(LEARNERS) == {method.name for method in METHODS.values() if not method.told_costs}


def test_nobody_changes_it():
    with pytest.raises(TypeError):
        METHODS["mine"] = METHODS["auto"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        METHODS["auto"].name = "mine"


def test_beside_learners_the_genetic_searches_have_settings():
    assert set(WITH_SETTINGS) - set(LEARNERS) == {"brkga", "tuned_brkga", "regal", "idrs"}


def test_only_what_was_trained_before_has_weights():
    assert set(WITH_WEIGHTS) == {"regal", "gas", "idrs"}


def test_methods_of_slices_are_what_people_do_by_hand():
    pipelines = {"gpipe", "one_f_one_b", "interleaved", "zero_bubble", "zero_bubble_h2"}
    assert set(OF_SLICES) == {"data_parallel", "fsdp"} | pipelines


# The settings of a released code are those of the methods that have one.


def test_settings_of_a_release_are_refused_by_methods_without_one():
    problem = Problem(chain(4), devices(1, 1))
    for method in ("post", "brkga", "heft"):
        with pytest.raises(SituateError, match=f"'{method}' has no 'release'; these do: hier"):
            solve(problem, method, evaluations=2, learning=Learning(settings="release"))


def test_the_planner_has_them():
    pytest.importorskip("torch")
    problem = Problem(fork(12), devices(1, 1))
    learning = Learning(settings="release", groups=2)
    result = solve(problem, "hierarchical", evaluations=2, learning=learning)
    assert (len(result.samples), result.knows) == (2, "measured times only")
