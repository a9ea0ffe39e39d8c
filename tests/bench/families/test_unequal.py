"""Random graphs on unequal devices."""

from __future__ import annotations

import pytest

from situate.bench.families.unequal import instances, layered
from situate.data.problem_arrays import UNLIMITED
from situate.solvers import solve

PROBLEMS = [instance.make() for instance in instances() if instance.name.startswith("100")]
NAMES = [instance.name for instance in instances() if instance.name.startswith("100")]


def problems_named(word: str) -> list:
    return [problem for problem, name in zip(PROBLEMS, NAMES, strict=True) if word in name]


def test_there_are_two_to_sixteen_devices_of_different_speed():
    assert {problem.d for problem in PROBLEMS} == {2, 4, 8, 16}
    for problem in PROBLEMS:
        total = problem.seconds.sum(axis=0)
        assert 1 < total.max() / total.min() < 5


def test_a_shared_medium_is_one_channel():
    assert all(problem.channel.max() == 0 for problem in problems_named("one medium"))
    assert all(problem.channel.max() > 0 for problem in problems_named("own links"))


def test_memory_has_a_limit_where_it_is_tight():
    assert all((problem.capacity < UNLIMITED).all() for problem in problems_named("tight"))
    assert all((problem.capacity == UNLIMITED).all() for problem in problems_named("ample"))


@pytest.mark.parametrize(
    "problem", problems_named("tight"), ids=lambda problem: f"{problem.d} devices"
)
def test_a_plan_fits_where_memory_is_tight(problem):
    assert solve(problem, "auto", evaluations=3000).feasible


def test_parameters_are_held_beside_the_op_that_reads_them():
    graph = layered(64, seed=0)
    parameters = [op for op in graph.ops if op.kind == "parameter"]
    assert len(parameters) == 8
    for op in parameters:
        assert op.persistent > 0
        assert sum(other.group == op.group for other in graph.ops) == 2
