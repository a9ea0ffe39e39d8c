"""The bytes that few ops need at once in their best order."""

from __future__ import annotations

import dataclasses
import math

import pytest

from situate.bounds.best_order import bytes_of_best_order
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
from tests.solvers.exhaustive import optimum
from tests.solvers.families import chain, layered


def test_what_is_no_tree_is_certified_on_one_device() -> None:
    """One op more waits for the first; no more than eleven bytes are live whatever has ended."""
    problem = on(dataclasses.replace(two_parts(), control=((0, 6),)), 1)
    bound = tightest_bound(problem)
    assert bytes_of_tree(problem) == 0
    assert (bound.value, bound.name) == (12, "best order")
    assert solve(problem, evaluations=50).optimal


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_least_of_all_orders(seed: int) -> None:
    problem = on(layered(3, 2, seed, workspace=seed % 4), 1, ("situate", "regal")[seed % 2])
    assert bytes_of_best_order(problem) + problem.persistent.sum() == optimum(problem)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_that_of_a_tree(seed: int) -> None:
    problem = on(tree(40, seed), 1)
    assert bytes_of_best_order(problem) in (0, bytes_of_tree(problem))


@pytest.mark.parametrize("seed", range(20))
def test_devices_hold_no_less_between_them(seed: int) -> None:
    assert_devices_hold_no_less(bytes_of_best_order, layered(2, 2, seed), seed, brief=0.0)


def test_what_is_made_in_no_time_is_not_counted() -> None:
    assert_brief_ops_are_not_counted(bytes_of_best_order)


def test_many_ops_or_no_time_are_not_looked_at() -> None:
    assert bytes_of_best_order(on(chain(64, size=3), 1)) == 6
    assert bytes_of_best_order(on(chain(65, size=3), 1)) == 0
    assert bytes_of_best_order(on(chain(5, size=3), 1), until=-math.inf) == 0
