"""Groups are those that were asked for, or those of the settings."""

from __future__ import annotations

import itertools

import pytest

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers.learned.grouped import coarser_groups, grouped
from situate.solvers.learned.learner import Learning
from tests.grouping.cases import problems
from tests.solvers.families import chain, devices

PROBLEM = Problem(chain(60), devices(1, 1))


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
