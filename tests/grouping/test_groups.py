from __future__ import annotations

import numpy as np
import pytest

from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.grouping import Groups, make_groups
from tests.grouping.cases import TWO_KINDS, problems, random_placement
from tests.solvers import families


def test_expand_and_devices_are_inverse():
    problem = families.problem("layered")
    groups = make_groups(problem, np.arange(problem.units) // 3)
    devices = np.concatenate([random_placement(groups.allowed, seed) for seed in range(5)])
    placements = groups.expand(devices)
    assert placements.shape == (5, problem.n)
    assert np.array_equal(groups.devices(placements), devices)


@pytest.mark.parametrize("of", ["groups", "ops"])
def test_devices_of_another_shape_or_in_fractions_are_refused(of):
    """Too many columns or fractions would be cut off in silence."""
    problem = families.problem("layered")
    groups = make_groups(problem, np.arange(problem.units) // 3)
    turn, width = (groups.expand, len(groups)) if of == "groups" else (groups.devices, problem.n)
    for wrong in (np.zeros((2, width + 1), int), np.zeros((2, width)), np.zeros(width, int), None):
        with pytest.raises(SituateError, match=rf"must be integers of shape \(\d+, {width}\)"):
            turn(wrong)
    assert turn([[0] * width]).shape == turn(np.zeros((1, width), np.uint8)).shape


def test_units_of_a_label_that_share_no_device_are_split():
    problem = problems()["pinned"]
    groups = make_groups(problem, np.zeros(problem.units, np.int64))
    assert len(groups) == 2
    assert groups.allowed.sum(axis=1).tolist() == [1, 1]


def test_a_unit_joins_the_first_part_with_which_it_shares_a_device():
    """Free ops join the CPU's part, which is first."""
    pins = ("cpu", None, "x1", None)
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, device=pin) for j, pin in enumerate(pins))
    groups = make_groups(Problem(Graph("g", ops), TWO_KINDS), [0, 0, 0, 0])
    assert groups.of_op.tolist() == [0, 0, 1, 0]


def test_a_label_that_no_device_can_hold_is_split():
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=4) for j in range(6))
    groups = make_groups(Problem(Graph("g", ops), families.devices(1, 1, memory=9)), [5] * 6)
    assert groups.of_op.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_device_too_small_for_a_group_is_not_allowed():
    small = families.devices(1, 2, memory=9).devices
    cluster = families.devices(1, 2, memory=9)
    roomy = small[1].__class__("d1", kind="x2", memory=100)
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=4) for j in range(6))
    problem = Problem(Graph("g", ops), type(cluster)("mixed", (small[0], roomy), cluster.links))
    assert make_groups(problem, [0] * 6).allowed.tolist() == [[False, True]]


def test_labels_may_be_any_numbers():
    problem = families.problem("apart")
    groups = make_groups(problem, [7, -3, 7, 100, -3, 7, 100, 100, 2**40])
    assert groups.of_op.tolist() == [0, 1, 0, 2, 1, 0, 2, 2, 3]


def test_a_label_too_few_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="labels: one for each of 9 units"):
        make_groups(families.problem("apart"), [0, 1])


def test_the_majority_of_a_groups_weight_says_its_device():
    groups = Groups(np.array([0, 0, 0, 1], np.int32), np.array([[True, True], [False, True]]))
    placement = np.array([0, 1, 1, 0], np.int32)
    light, heavy = np.array([1.0, 1.0, 1.0, 1.0]), np.array([3.0, 1.0, 1.0, 1.0])
    assert groups.majority(placement, light).tolist() == [1, 1]
    assert groups.majority(placement, heavy).tolist() == [0, 1]
