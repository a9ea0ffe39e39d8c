"""The contents of a picture of learning."""

from __future__ import annotations

import pytest

from situate.cli.curves import levels
from situate.data.cluster import Cluster, Device, Link
from situate.data.problem import Problem
from situate.solvers import solve
from tests.cli.conftest import diamond


def problem(memory: int | None = None) -> Problem:
    devices = tuple(Device(name, memory=memory) for name in "ab")
    return Problem(diamond(), Cluster("two", devices, (Link("*", "*", 1e6),)))


def test_levels_are_a_single_device_the_bound_and_methods_that_do_not_learn():
    results = [solve(problem(), method, evaluations=12) for method in ("post", "random", "heft")]
    found = levels(results)
    assert list(found) == ["single", "lower bound", "heft"]
    assert [*found.values()] == [4.0, results[0].lower_bound, pytest.approx(3.001)]


def test_a_plan_that_does_not_fit_is_no_level():
    assert "single" not in levels([solve(problem(3_200), "post", evaluations=12)])


def test_there_is_no_bound_where_nothing_fits():
    results = [solve(problem(400), method, evaluations=12) for method in ("post", "heft")]
    assert levels(results) == {}


def test_the_expert_is_a_level_where_there_is_one():
    from situate import zoo

    known = Problem(zoo.load("cifar_cnn"), Cluster.preset("k80-2"))
    found = levels([solve(known, "single")])
    assert list(found) == ["single", "expert", "lower bound"]
