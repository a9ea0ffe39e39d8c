"""From decisions to candidates: decoders, values and restrictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.errors import SituateError
from tests.solvers.families import apart, chain, devices
from tests.solvers.searches import decision, late_tensor, search_of

# If memory is short, all decoders are tried; otherwise one is enough.


def test_both_decoders_count_as_evaluations() -> None:
    search = search_of()
    search.offer(*decision(0, 0, 0, 0))
    search.offer(*decision(0, 0, 0, 0), ["eager"])
    assert search.budget.evaluations == 3


@pytest.mark.parametrize("objective", ["time", "throughput", "memory"])
def test_what_does_not_fit_by_one_decoder_is_heard_by_all(objective: Any) -> None:
    problem, order = late_tensor()
    search = search_of(replace(problem, objective=objective))
    result = search.offer(np.array([0, 1, 1], np.int32), order, ["eager"])
    assert (result.decoder, result.feasible) == ("serial", True)


def test_what_fits_or_is_too_slow_anyway_is_heard_once() -> None:
    problem, order = late_tensor()
    search = search_of(problem)
    search.offer(np.array([0, 1, 1], np.int32), order, ["serial"])
    assert search.budget.evaluations == 1
    assert search.best is not None
    again = search_of(problem)
    again.best = replace(search.best, value=0.5)
    assert not again.offer(np.array([0, 1, 1], np.int32), order, ["eager"]).feasible
    assert again.budget.evaluations == 1


def test_under_atomic_rules_calls_tell_the_time() -> None:
    graph = chain(3)
    for objective, decoders in (("time", ("calls",)), ("throughput", ("eager", "serial"))):
        atomic = Problem(graph, devices(1, 1), objective, "dnn-partitioning")  # type: ignore[arg-type]
        assert search_of(atomic).decoders == decoders


# The value of a candidate depends on the objective, its feasibility on the memory.


@pytest.mark.parametrize(
    ("objective", "value"), [("time", 3.0), ("memory", 9.0), ("throughput", 3.0)]
)
def test_the_value_is_the_objectives(objective: Any, value: float) -> None:
    search = search_of(Problem(apart(4, persistent=3), devices(1, 2), objective))
    assert search.offer(*decision(0, 0, 0, 1)).value == value


def test_a_unit_larger_than_its_device_does_not_fit() -> None:
    unequal = Cluster("c", (Device("d0", memory=1), Device("d1", memory=9)), (Link("*", "*", 1.0),))
    of = Problem(Graph("g", (Op("big", seconds={"*": 1.0}, persistent=5),)), unequal)
    assert not search_of(of).offer(*decision(0)).feasible
    assert search_of(of).offer(*decision(1)).feasible


# A placement that breaks a restriction never becomes a candidate.


@pytest.mark.parametrize("rules", ["situate", "dnn-partitioning"])
def test_a_placement_that_may_not_be_is_refused(rules: Any) -> None:
    op = Op("a", seconds={"*": 1.0}, device="d0")
    search = search_of(Problem(Graph("g", (op,)), devices(1, 1), "time", rules))
    with pytest.raises(SituateError, match="op 'a' is placed on 'd1', where it may not run"):
        search.offer(*decision(1))
    with pytest.raises(SituateError, match="op 'a' is placed on 'd1', where it may not run"):
        search.prefer([decision(1)[0]], decision(1)[1], 1.0)
    assert search.best is None
