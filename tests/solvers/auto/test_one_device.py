"""Several devices must be worth it where costs were measured."""

from __future__ import annotations

import pytest

import situate
from situate.data.cluster import Device, Link
from situate.data.costs import Costs, MeasuredDevice
from situate.data.graph import Graph, Op, Tensor

GRAPH = Graph(
    "fork",
    tuple(Op(name, "aten.mm", seconds={"*": 1.0}) for name in "abcd"),
    (Tensor("a:0", 0, 8, (1, 2)), Tensor("b:0", 1, 8, (3,)), Tensor("c:0", 2, 8, (3,))),
)
DEVICES = (Device("d0", kind="cpu"), Device("d1", kind="cpu"))
TWO = situate.Cluster("two", DEVICES, (Link("*", "*", bandwidth=1e12),))


def planned(step: float, contention: float = 1.0) -> situate.Result:
    measured = [MeasuredDevice(d.name, d.kind, contention={"matmul": contention}) for d in DEVICES]
    costs = Costs("here", "today", {}, measured, [], 0.0, step)
    return situate.solve(situate.Problem(GRAPH, TWO, costs=costs), evaluations=200)


@pytest.mark.parametrize("step", [0.0, 0.9])
def test_several_are_used_where_they_gain_more_than_they_cost(step: float) -> None:
    result = planned(step)
    assert len(result.devices_used) == 2
    assert result.value == pytest.approx(3.0)


def test_one_is_used_where_a_step_on_several_costs_what_it_gains() -> None:
    result = planned(1.1)
    assert result.devices_used == ["d0"]
    assert result.value == pytest.approx(4.0)


def test_one_is_used_where_devices_slow_one_another_down_by_what_several_gain() -> None:
    assert len(planned(0.0, contention=1.8).devices_used) == 2
    assert planned(0.0, contention=2.2).devices_used == ["d0"]


def test_without_measured_costs_the_model_decides() -> None:
    result = situate.solve(situate.Problem(GRAPH, TWO), evaluations=200)
    assert len(result.devices_used) == 2
