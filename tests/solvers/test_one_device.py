"""Several devices must be worth it where costs were measured."""

from __future__ import annotations

import pytest

import situate
from situate.costs.measured import Costs
from situate.graph import Graph, Op, Tensor

GRAPH = Graph(
    "fork",
    tuple(Op(name, seconds={"*": 1.0}) for name in "abcd"),
    (Tensor("a:0", 0, 8, (1, 2)), Tensor("b:0", 1, 8, (3,)), Tensor("c:0", 2, 8, (3,))),
)
TWO = situate.Cluster.find("identical:2")


def planned(step: float, synchronisation: float = 0.0) -> situate.Result:
    costs = Costs("here", "today", {}, [], [], synchronisation, step)
    return situate.solve(situate.Problem(GRAPH, TWO, costs=costs), evaluations=200)


@pytest.mark.parametrize("step", [0.0, 0.9])
def test_several_are_used_where_they_gain_more_than_they_cost(step: float) -> None:
    result = planned(step)
    assert len(result.devices_used) == 2
    assert result.value == 3.0


def test_one_is_used_where_a_step_on_several_costs_what_it_gains() -> None:
    result = planned(1.1)
    assert result.devices_used == ["d0"]
    assert result.value == 4.0


def test_one_is_used_where_sending_costs_what_it_gains() -> None:
    assert planned(0.0, synchronisation=1.1).devices_used == ["d0"]


def test_without_measured_costs_the_model_decides() -> None:
    result = situate.solve(situate.Problem(GRAPH, TWO), evaluations=200)
    assert len(result.devices_used) == 2
