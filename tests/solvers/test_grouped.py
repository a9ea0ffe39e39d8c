"""Groups are those that were asked for, or those of the settings."""

from __future__ import annotations

import pytest

from situate.errors import SituateError
from situate.problem import Problem
from situate.solvers.grouped import grouped
from situate.solvers.learner import Learning
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
