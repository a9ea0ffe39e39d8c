from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.grouping.work import REFERENCE, op_work, unit_work
from tests.grouping.cases import problems
from tests.solvers import families

FLOPS = REFERENCE.flops["float32"]


def problem(*ops: Op) -> Problem:
    seconds = {"*": 1.0}
    given = tuple(structs.replace(op, seconds=op.seconds or seconds) for op in ops)
    return Problem(Graph("g", given), families.devices(1, 2))


def test_work_is_seconds_on_the_reference_by_the_roofline():
    found = op_work(problem(Op("a", "matmul", flops=int(7 * FLOPS)), Op("b", traffic=1), Op("c")))
    assert found == pytest.approx([REFERENCE.launch + 10, REFERENCE.launch, 0.0], rel=1e-6)


def test_work_does_not_depend_on_an_ops_own_seconds():
    slow = Op("a", traffic=10**9, seconds={"x1": 100.0, "x2": 3.0})
    fast = structs.replace(slow, seconds={"*": 1e-3})
    assert op_work(problem(slow)).tolist() == op_work(problem(fast)).tolist()


@pytest.mark.parametrize("case", problems())
def test_without_flops_and_traffic_all_ops_are_alike(case):
    assert (op_work(problems()[case]) == 1).all()


def test_the_work_of_a_unit_is_that_of_its_ops():
    together = problem(Op("a", traffic=10**9, group="g"), Op("b", traffic=10**9, group="g"))
    np.testing.assert_allclose(unit_work(together), [op_work(together).sum()])
