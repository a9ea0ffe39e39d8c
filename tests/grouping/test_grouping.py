from __future__ import annotations

import numpy as np
import pytest

from situate.errors import SituateError
from situate.grouping import GROUPINGS, METHODS_WITH_COUNT, group
from tests.grouping.cases import problems, random_placement

CASES = problems()


@pytest.fixture(params=CASES, scope="module")
def problem(request):
    return CASES[request.param]


@pytest.fixture(params=GROUPINGS, scope="module")
def groups(request, problem):
    if request.param == "metis":
        pytest.importorskip("pymetis")
    return group(problem, request.param, 4 if request.param in METHODS_WITH_COUNT else None)


def test_every_op_is_in_one_group_and_no_group_is_empty(problem, groups):
    assert groups.of_op.shape == (problem.n,)
    assert sorted(set(groups.of_op.tolist())) == list(range(len(groups)))


def test_groups_are_in_the_order_of_their_first_op(problem, groups):
    visited = list(dict.fromkeys(groups.of_op[list(problem.graph.order)].tolist()))
    assert visited == list(range(len(groups)))


def test_units_are_never_split(problem, groups):
    pairs = set(zip(problem.unit.tolist(), groups.of_op.tolist(), strict=True))
    assert len(pairs) == problem.units


def test_a_group_has_the_devices_that_can_run_and_hold_all_of_it(problem, groups):
    for index in range(len(groups)):
        ops = groups.of_op == index
        may = problem.allowed[problem.unit[ops]].all(axis=0)
        holds = problem.persistent[ops].sum() <= problem.capacity
        assert (groups.allowed[index] == (may & holds)).all()
    assert groups.allowed.any(axis=1).all()


def test_pins_and_kinds_hold_for_every_placement_of_groups(problem, groups):
    placement = groups.expand(random_placement(groups.allowed, seed=1))[0]
    assert problem.allowed[problem.unit, placement].all()


@pytest.mark.parametrize("rule", GROUPINGS)
def test_a_rule_gives_the_same_groups_again(problem, rule):
    if rule == "metis":
        pytest.importorskip("pymetis")
    first, second = group(problem, rule), group(problem, rule)
    assert np.array_equal(first.of_op, second.of_op)


@pytest.mark.parametrize("rule", METHODS_WITH_COUNT)
def test_a_count_above_the_number_of_units_leaves_every_unit_alone(problem, rule):
    if rule == "metis":
        pytest.importorskip("pymetis")
    for count in (problem.units + 1, 10**30):
        assert len(group(problem, rule, count)) == problem.units


@pytest.mark.parametrize("rule", METHODS_WITH_COUNT)
def test_a_count_of_one_is_one_group_where_one_device_can_run_all(rule):
    if rule == "metis":
        pytest.importorskip("pymetis")
    assert len(group(CASES["layered"], rule, 1)) == 1


def test_a_wrong_rule_is_named_with_the_nearest():
    with pytest.raises(SituateError, match="unknown grouping 'prefx'; did you mean 'prefix'"):
        group(CASES["chain"], "prefx")


def test_a_count_below_one_is_refused():
    with pytest.raises(SituateError, match="groups: must be at least 1, got 0"):
        group(CASES["chain"], "heavy-edge", 0)


@pytest.mark.parametrize("rule", sorted(set(GROUPINGS) - set(METHODS_WITH_COUNT)))
def test_a_count_is_refused_by_rules_that_take_none(rule):
    with pytest.raises(
        SituateError, match=f"'{rule}' takes no number of groups; these do: 'bytes', 'str"
    ):
        group(CASES["chain"], rule, 3)
