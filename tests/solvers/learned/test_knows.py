"""Three kinds of methods: those of measured times only, with FLOPs or without, propose the same
whatever ops take, until something was measured; the others are told costs, and say so."""

from __future__ import annotations

import numpy as np
import pytest

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.solvers import LEARNERS, METHODS, solve
from situate.solvers.learned.learner import Learning
from tests.grouping.test_structure import told_otherwise
from tests.grouping.test_tensor_bytes import with_other_work

PROBLEM = Problem(zoo.load("cifar_cnn"), Cluster.preset("k80-4"))
OTHER = told_otherwise(PROBLEM)
WORKED = with_other_work(PROBLEM)
PAPER = Learning(settings="paper")
TUNED = Learning()
HEAVY_EDGE = Learning(grouping="heavy-edge")
BYTES = Learning(grouping="bytes")
NEED_TORCH = ("spotlight", "colocrl", "hierarchical")


def first_proposals(problem: Problem, method: str, learning: Learning) -> np.ndarray:
    learner = METHODS[method].learner()(problem, learning, 240, 0)
    return learner.ask(learner.batch)


@pytest.fixture(params=LEARNERS)
def method(request):
    if request.param in NEED_TORCH:
        pytest.importorskip("torch")
    return request.param


def test_in_tuned_settings_the_first_proposals_are_the_same_whatever_ops_take(method):
    first, other = (first_proposals(problem, method, TUNED) for problem in (PROBLEM, OTHER))
    np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("of_a_paper", [name for name in LEARNERS if METHODS[name].paper])
def test_in_the_papers_settings_they_are_the_same_too(of_a_paper):
    if of_a_paper in NEED_TORCH:
        pytest.importorskip("torch")
    first, other = (first_proposals(problem, of_a_paper, PAPER) for problem in (PROBLEM, OTHER))
    np.testing.assert_array_equal(first, other)


def test_with_groups_that_are_told_costs_they_are_others():
    sixteen = Learning(grouping="heavy-edge", groups=16)
    first, other = (first_proposals(problem, "post", sixteen) for problem in (PROBLEM, OTHER))
    assert (first != other).any()


@pytest.mark.parametrize(
    ("learning", "knows"),
    [
        (HEAVY_EDGE, "told costs"),
        (Learning(grouping="metis"), "told costs"),
        (TUNED, "measured times and FLOPs"),
        (BYTES, "measured times only"),
        (PAPER, "measured times only"),
    ],
)
def test_a_learners_result_says_what_it_was_told(learning, knows):
    if learning.grouping == "metis":
        pytest.importorskip("pymetis")
    assert solve(PROBLEM, "post", evaluations=12, learning=learning).knows == knows


@pytest.mark.parametrize(
    "learning", [TUNED, HEAVY_EDGE, BYTES], ids=["tuned", "heavy-edge", "bytes"]
)
def test_every_learner_says_what_it_was_told(method, learning):
    learner = METHODS[method].learner()(PROBLEM, learning, 240, 0)
    assert learner.told_costs == (learning is HEAVY_EDGE)
    assert learner.reads_flops == (learning is TUNED)


def test_with_groups_by_bytes_no_learner_sees_flops(method):
    first, other = (first_proposals(problem, method, BYTES) for problem in (PROBLEM, WORKED))
    np.testing.assert_array_equal(first, other)


def test_groups_by_structure_change_with_flops():
    sixteen = Learning(groups=16)
    first, other = (first_proposals(problem, "post", sixteen) for problem in (PROBLEM, WORKED))
    assert (first != other).any()


def test_blocks_of_groups_without_weights_are_made_with_flops():
    climber = METHODS["hill_climbing"].learner()(PROBLEM, Learning(grouping="prefix"), 240, 0)
    assert climber.reads_flops


def test_a_plan_to_begin_with_tells_costs():
    start = Learning(start=lambda: np.zeros(PROBLEM.n, np.int32))
    assert METHODS["post"].learner()(PROBLEM, start, 240, 0).told_costs
    assert METHODS["hill_climbing"].learner()(PROBLEM, start, 240, 0).told_costs


def test_a_method_that_does_not_learn_is_told_costs():
    assert solve(PROBLEM, "heft").knows == "told costs"


def test_a_rule_that_takes_a_number_has_the_levels_of_the_settings():
    learner = METHODS["post"].learner()(PROBLEM, HEAVY_EDGE, 240, 0)
    assert len(learner.groups) == 16
    learner_of_twenty = METHODS["post"].learner()(
        PROBLEM, Learning(grouping="heavy-edge", groups=20), 240, 0
    )
    assert len(learner_of_twenty.groups) == 20
