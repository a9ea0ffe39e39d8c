"""Where replicas are, and who reads them."""

from __future__ import annotations

from situate.data.problem import Problem
from situate.report.explain import explain
from situate.report.explanation_table import explanation_table
from situate.report.slices.replica_use import ReplicaUse, replica_uses
from situate.solvers import solve
from tests.report.test_tables import shown
from tests.solvers.families import devices
from tests.solvers.slices import sliced


def test_every_replica_says_who_reads_it_and_where_it_is_held():
    graph = sliced(1, 1, 1, held=(3, 4), update=0.5, replicas=(2, 1))
    problem = Problem(graph, devices(1, 2, bandwidth=1e9))
    schedule = solve(problem, "data_parallel").schedule
    first, second = found = replica_uses(problem, schedule)
    assert first == ReplicaUse(0, (0, 2), {"d0": 7}, 1.0)
    assert second == ReplicaUse(1, (1,), {"d1": 7}, 2.0)
    explained = explain(problem, schedule)
    assert explained.replicas == found
    lines = [line.split() for line in shown(explanation_table(explained)).splitlines()]
    assert ["0", "1.00", "s", "0,", "2", "d0", "7", "B"] in lines


def test_parameters_that_are_there_once_make_none():
    problem = Problem(sliced(1, 1), devices(1))
    assert replica_uses(problem, solve(problem, "single").schedule) == ()
