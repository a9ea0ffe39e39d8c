"""Placements and orders that come from outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op
from situate.data.placements import Restrictions, check_order, indices_of, integers
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.zoo import load
from tests.solvers.families import chain, devices

OPS = (
    Op("a", seconds={"*": 1.0}),
    Op("b", seconds={"*": 1.0}, device="d1"),
    Op("c", seconds={"*": 1.0}, group="g"),
    Op("d", seconds={"d0": 1.0, "d2": 1.0}),
    Op("e", seconds={"*": 1.0}, group="g"),
)
PROBLEM = Problem(Graph("restricted", OPS), devices(1, 1, 1))
GOOD = [0, 1, 2, 0, 2]


def _checked(*placements: list[int]) -> Any:
    return Restrictions(PROBLEM).check(np.array(placements), lambda row: f"row {row}: ")


def test_a_placement_that_holds_is_copied() -> None:
    inputs = np.array([GOOD, [2, 1, 0, 2, 0]], np.int32)
    checked = Restrictions(PROBLEM).check(inputs, str)
    assert checked.dtype == np.int32
    np.testing.assert_array_equal(checked, inputs)
    assert not np.shares_memory(checked, inputs)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([0, 1, 2, 3, 2], "row 1: op 'd' is placed on device 3; there are devices 0 to 2"),
        ([2**32, 1, 2, 0, 2], "row 1: op 'a' is placed on device 4294967296;"),
        ([0, 0, 2, 0, 2], "row 1: op 'b' is placed on 'd0', where it may not run; it may on 'd1'"),
        ([0, 1, 2, 1, 2], "row 1: op 'd' is placed on 'd1', .* it may on 'd0', 'd2'"),
        ([0, 1, 2, 0, 1], "row 1: group 'g' is split: op 'c' is placed on 'd2' and op 'e' on 'd1'"),
    ],
)
def test_the_row_and_the_op_that_break_a_restriction_are_named(
    wrong: list[int], message: str
) -> None:
    with pytest.raises(SituateError, match=message):
        _checked(GOOD, wrong)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_refused_is_what_a_plan_refuses(seed: int) -> None:
    """Random placements with an op off its devices or away from its group."""
    placement = np.random.default_rng(seed).integers(3, size=5)
    allowed = PROBLEM.allowed[PROBLEM.unit, placement].all() and placement[2] == placement[4]
    try:
        _checked(placement)
    except SituateError:
        assert not allowed
    else:
        assert allowed


def test_every_placement_on_one_device_of_a_published_network_holds() -> None:
    problem = Problem(load("resnet50"), Cluster.preset("k80-4"))
    Restrictions(problem).check(np.arange(4)[:, None].repeat(problem.n, axis=1), str)


@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        ([[0, 1], [2]], "inhomogeneous"),
        ([0.0, 1.0], r"got float64 of shape \(2,\)"),
        ([True, False], "got bool"),
        (None, "got object"),
        ([0, 1, 2], r"got int64 of shape \(3,\)"),
    ],
)
def test_what_is_no_array_of_integers_is_refused(arguments: object, got: str) -> None:
    with pytest.raises(SituateError, match=rf"rows: must be integers of shape \(2,\).*{got}"):
        integers(arguments, (2,), "rows")


def test_an_order_has_every_op_once() -> None:
    problem = Problem(chain(4), devices(1))
    assert check_order(problem, [3, 1, 0, 2]).tolist() == [3, 1, 0, 2]
    with pytest.raises(SituateError, match="it lacks 3, op 'op3'"):
        check_order(problem, [0, 1, 2, -1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": "d0"}, "placement: unknown op 'x'; known: a, b, c, d, e"),
        ({"c": "d9"}, "placement: op 'c' is on unknown device 'd9'; did you mean"),
        ({"c": 1}, "placement: op 'c' is on unknown device 1; did you mean 'd1'"),
    ],
)
def test_a_mapping_of_unknown_names_is_refused(changes: dict[str, Any], message: str) -> None:
    names = {op.name: f"d{device}" for op, device in zip(OPS, GOOD, strict=True)}
    assert indices_of(PROBLEM, names).tolist() == GOOD
    with pytest.raises(SituateError, match=message):
        indices_of(PROBLEM, names | changes)


def test_of_several_unknown_names_the_first_is_told() -> None:
    names = {f"x{i}": "d0" for i in reversed(range(10))} | {3: "d0"}
    with pytest.raises(SituateError, match="placement: unknown op 3"):
        indices_of(PROBLEM, names)  # type: ignore[arg-type]


def test_a_mapping_that_lacks_an_op_is_refused() -> None:
    with pytest.raises(SituateError, match="placement: op 'b' has no device"):
        indices_of(PROBLEM, {"a": "d0"})
