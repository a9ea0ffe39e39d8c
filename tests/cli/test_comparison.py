"""Methods one after the other."""

from __future__ import annotations

import pytest

from situate.cli.comparison import best_result, method_names
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers import LEARNERS, METHODS
from tests.report.outcome import outcome


# Names of methods.
def test_by_default_all_are_compared_but_for_those_that_learn():
    assert {*method_names(None)} == {*METHODS} - {*LEARNERS}


def test_a_single_device_comes_first_and_no_method_twice():
    assert method_names("heft, post,heft") == ["single", "heft", "post"]


def test_a_method_that_is_named_twice_is_noted(capsys):
    method_names("post,heft,post,post")
    method_names("single,heft")
    assert capsys.readouterr().err == "post: appears more than once in --methods; it runs once\n"


def test_an_unknown_method_is_told_its_nearest():
    with pytest.raises(SituateError, match="did you mean 'post'"):
        method_names("pots")


@pytest.mark.parametrize("methods", ["", ",", "heft,", "heft,,post"])
def test_an_empty_name_of_a_method_is_said_to_be_one(methods):
    with pytest.raises(SituateError, match=f"--methods '{methods}': an empty name"):
        method_names(methods)


# The order of results.
def test_of_equal_plans_the_one_on_fewest_devices_is_best():
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 0.0}))
    problem = Problem(Graph("two", ops), Cluster.identical(2))
    apart, together = outcome(problem, [0, 1]), outcome(problem, [0, 0])
    assert apart.value == together.value
    assert best_result([apart, together]) is best_result([together, apart]) is together


def test_a_plan_that_fits_is_better_than_one_that_does_not():
    ops = tuple(Op(name, seconds={"*": 1.0}, persistent=600) for name in "ab")
    devices = (Device("small", memory=1000), Device("large", memory=2000))
    cluster = Cluster("two", devices, (Link("*", "*", bandwidth=1e6),))
    problem = Problem(Graph("two", ops), cluster)
    wrong, right = outcome(problem, [0, 0]), outcome(problem, [1, 1])
    assert not wrong.feasible
    assert best_result([wrong, right]) is right


def test_where_none_fits_the_one_with_fewest_bytes_too_many_is_best():
    ops = tuple(Op(name, seconds={"a": 1.0, "b": 0.1}, persistent=60) for name in "xyz")
    devices = (Device("a", memory=100), Device("b", memory=100))
    cluster = Cluster("two", devices, (Link("*", "*", bandwidth=1e6),))
    problem = Problem(Graph("two", ops), cluster)
    quick, close = outcome(problem, [1, 1, 1]), outcome(problem, [0, 1, 1])
    assert quick.value < close.value
    assert best_result([quick, close]) is close


def test_what_was_measured_counts_for_more_than_what_was_predicted():
    problem = Problem(Graph("one", (Op("a", seconds={"*": 1.0}),)), Cluster.identical(1))
    slow, quick = outcome(problem, [0], measured=0.9), outcome(problem, [0], measured=0.8)
    assert slow.value == quick.value
    assert best_result([slow, quick]) is quick


def test_nothing_to_compare_is_an_error():
    with pytest.raises(SituateError, match="no method"):
        best_result([])
