"""The bytes that a tree needs at once."""

from __future__ import annotations

import math

import pytest

from situate.bounds.lower_bound import tightest_bound
from situate.bounds.tree import bytes_of_tree
from situate.solvers import solve
from tests.bounds.one_device import (
    assert_brief_ops_are_not_counted,
    assert_devices_hold_no_less,
    on,
    two_parts,
)
from tests.data.test_tree_order import tree
from tests.solvers.families import chain, fork


def test_a_tree_on_one_device_is_certified() -> None:
    """Whatever has ended, no more than eleven bytes are certain."""
    problem = on(two_parts(), 1)
    bound = tightest_bound(problem)
    assert (bound.value, bound.name) == (12, "tree")
    assert solve(problem, evaluations=50).optimal


def test_a_large_tree_is_solved_by_its_order() -> None:
    result = solve(on(tree(300, 1), 1), evaluations=50)
    assert result.optimal


@pytest.mark.parametrize("seed", range(60))
def test_devices_hold_no_less_between_them(seed: int) -> None:
    assert_devices_hold_no_less(bytes_of_tree, tree(4, seed), seed, brief=0.2 * (seed % 2))


def test_what_is_made_in_no_time_is_not_counted() -> None:
    assert_brief_ops_are_not_counted(bytes_of_tree)


def test_what_is_no_tree_or_has_no_time_is_not_looked_at() -> None:
    assert bytes_of_tree(on(fork(5), 1)) == 0
    assert bytes_of_tree(on(chain(5, size=3), 1)) == 6
    assert bytes_of_tree(on(chain(5, size=3), 1), until=-math.inf) == 0
