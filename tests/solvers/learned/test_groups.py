"""Groups that a learner places, coarser unions of them, and blocks that move as one."""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pytest

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.grouping import group, make_groups
from situate.solvers.learned.groups import coarser_groups, grouped, levels, levels_of, op_weights
from situate.solvers.learned.learner import Learning
from tests.grouping.cases import problems
from tests.solvers.families import chain, devices

PROBLEM = Problem(chain(60), devices(1, 1))


# `Learning` overrides the rule and the number of groups in the settings.


@pytest.mark.parametrize(
    ("learning", "count"),
    [
        (Learning(), 20),
        (Learning(grouping="heavy-edge"), 20),
        (Learning(groups=10), 10),
        (Learning(grouping="heavy-edge", groups=10), 10),
        (Learning(grouping="none"), 60),
    ],
)
def test_the_number_of_the_settings_holds_until_another_is_asked_for(
    learning: Learning, count: int
) -> None:
    assert len(grouped(PROBLEM, learning, "heavy-edge", 20)) == count


def test_a_rule_that_takes_no_number_is_given_none() -> None:
    assert len(grouped(PROBLEM, Learning(grouping="none"), "heavy-edge", 20)) == 60
    with pytest.raises(SituateError, match="takes no number"):
        grouped(PROBLEM, Learning(grouping="none", groups=5), "heavy-edge", 20)


# Coarser levels nest, so that finer groups inherit their distributions.


@pytest.mark.parametrize("case", problems())
def test_levels_are_unions_of_finer_ones_and_fewer(case: str) -> None:
    problem = problems()[case]
    groups = grouped(problem, Learning(), "heavy-edge", 8)
    levels = [*coarser_groups(problem, groups, "heavy-edge", (2, 4)), groups]
    for coarse, fine in itertools.pairwise(levels):
        assert len(coarse) <= len(fine)
        assert (coarse.of_op == coarse.of_op[fine.first][fine.of_op]).all()
        assert coarse.allowed.any(axis=1).all()


def test_a_level_has_as_many_groups_as_asked_for_where_ops_are_alike() -> None:
    groups = grouped(PROBLEM, Learning(), "heavy-edge", 20)
    assert [len(level) for level in coarser_groups(PROBLEM, groups, "heavy-edge", (3, 10))] == [
        3,
        10,
    ]


PROBLEMS = {
    "chain": (Problem(chain(200), devices(1, 1)), 100),
    "network": (Problem(zoo.load("inception_v3"), Cluster.preset("k80-2")), 384),
}


@pytest.fixture(params=PROBLEMS)
def groups_of_case(request):
    problem, count = PROBLEMS[request.param]
    groups = group(problem, "heavy-edge", count)
    return groups, levels(problem, groups)


# Blocks partition the groups at every scale.


def test_every_group_is_in_one_block_of_every_scale(groups_of_case):
    groups, of = groups_of_case
    for scale in of:
        assert sorted(np.concatenate(scale).tolist()) == list(range(len(groups)))


def test_the_first_scale_is_the_groups_and_every_other_has_half_the_blocks(groups_of_case):
    groups, of = groups_of_case
    sizes = [len(scale) for scale in of]
    assert sizes[0] == len(groups)
    assert sizes[-1] == 12
    assert all(wider == 2 * few for wider, few in pairwise(sizes[1:]))


def test_a_chain_is_cut_into_stretches():
    problem = Problem(chain(96), devices(1, 1))
    groups = group(problem, "none")
    for block in levels(problem, groups)[-1]:
        assert np.ptp(groups.first[block]) == len(block) - 1


def test_few_groups_have_one_scale():
    problem = Problem(chain(5), devices(1, 1))
    assert [len(scale) for scale in levels(problem, group(problem, "none"))] == [5]


def test_a_group_is_in_the_block_that_has_most_of_its_seconds():
    problem = Problem(chain(6, seconds=[1.0, 9.0] * 3), devices(1, 1))
    pairs = make_groups(problem, np.arange(6) // 2)
    weights = op_weights(problem, "seconds")
    alone, shifted = levels_of(problem, pairs, [np.array([0, 1, 1, 1, 2, 1])], weights)
    assert [block.tolist() for block in alone] == [[0], [1], [2]]
    assert [block.tolist() for block in shifted] == [[0, 1, 2]]


def test_an_ops_seconds_are_those_on_the_device_that_is_fastest_for_it():
    """The second op takes longer elsewhere, and the third runs nowhere else."""
    seconds = {"x1": 9.0, "x2": 9.0}, {"x1": 1.0, "x2": 20.0}, {"x1": 1.0}, {"x1": 1.0}
    ops = tuple(Op(f"op{j}", seconds=duration) for j, duration in enumerate(seconds))
    problem = Problem(Graph("g", ops), devices(1, 2))
    groups = make_groups(problem, np.array([0, 0, 0, 1]))
    weights = op_weights(problem, "seconds")
    _, blocks = levels_of(problem, groups, [np.array([0, 1, 1, 1])], weights)
    assert [block.tolist() for block in blocks] == [[0], [1]]
