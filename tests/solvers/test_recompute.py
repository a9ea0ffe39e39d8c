"""The modules that run again, chosen for a cluster."""

from __future__ import annotations

from functools import partial

import pytest

from situate.data.cluster import Cluster, Device
from situate.data.problem import Problem
from situate.solvers import solve
from situate.solvers.recompute import by_gain, with_recompute
from tests.solvers.recomputing import LARGE, layered_step


def problem(memory: int | None, objective: str, names: tuple[str, ...]) -> Problem:
    cluster = Cluster("one", (Device("d", memory=memory),))
    return Problem(layered_step(4, names), cluster, objective)


def chosen(memory: int | None, objective: str = "time") -> tuple[str, ...]:
    return with_recompute(partial(problem, memory, objective)).graph.recompute


@pytest.mark.parametrize(
    ("memory", "modules"),
    [(None, ()), (1000, ()), (330, ("l0",)), (230, ("l0", "l1")), (130, ("l0", "l1", "l2"))],
)
def test_as_few_run_again_as_memory_asks_for(memory, modules):
    assert chosen(memory) == modules


def test_memory_that_is_to_be_small_is_made_small():
    found = with_recompute(partial(problem, None, "memory"))
    assert solve(found, evaluations=100).value < 2 * LARGE


def test_those_come_first_that_free_most_for_their_time():
    assert by_gain(problem(None, "time", ("all",))) == ["l0", "l1", "l2", "l3"]
