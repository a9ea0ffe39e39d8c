"""What no plan may do is refused by name, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from situate.errors import SituateError
from situate.graph import Graph, Op
from situate.problem import Problem
from situate.solvers.lawful import check_placement
from tests.oracle.problems import random_decision, random_problem
from tests.solvers.families import apart, devices

OPS = (
    Op("pinned", seconds={"*": 1.0}, device="d0"),
    Op("choosy", seconds={"d0": 1.0}),
    Op("left", seconds={"*": 1.0}, group="g"),
    Op("right", seconds={"*": 1.0}, group="g"),
)


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        ((1, 0, 1, 1), "op 'pinned' is pinned to 'd0', but runs on 'd1'"),
        ((0, 1, 1, 1), "op 'choosy' cannot run on 'd1'"),
        ((0, 0, 1, 0), "group 'g' is split: op 'left' runs on 'd1', op 'right' on 'd0'"),
        ((0, 0, 0, 2), "op 'right' is on device 2 of 2"),
        ((0, 0, -1, -1), "op 'left' is on device -1 of 2"),
        ((0, 0, 1), "a placement has 4 devices, one an op; got an array of shape (3,)"),
    ],
)
def test_the_op_and_its_device_are_named(placement: tuple[int, ...], message: str) -> None:
    problem = Problem(Graph("g", OPS), devices(1, 1))
    with pytest.raises(SituateError) as error:
        check_placement(problem, np.array(placement, np.int32))
    assert str(error.value) == message


@pytest.mark.parametrize("seed", range(40))
def test_what_may_be_passes(seed: int) -> None:
    problem = random_problem(seed)
    check_placement(problem, random_decision(problem, seed).placement)


def test_a_placement_that_holds_too_much_passes() -> None:
    problem = Problem(apart(4, persistent=1), devices(1, 2, memory=3))
    check_placement(problem, np.zeros(4, np.int32))
