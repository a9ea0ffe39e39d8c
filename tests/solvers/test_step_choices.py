"""Choices about a step before it is planned."""

from __future__ import annotations

from functools import partial

import pytest

from situate.data.cluster import Cluster, Device
from situate.data.problem import Problem
from situate.data.slices import Sums
from situate.solvers import solve
from situate.solvers.step_choices import better_sums, by_gain, parameters_once, with_recompute
from tests.solvers.families import chain, devices
from tests.solvers.recomputing import LARGE, layered_step
from tests.solvers.slices import sliced


def problem(memory: int | None, objective: str, names: tuple[str, ...]) -> Problem:
    cluster = Cluster("one", (Device("d", memory=memory),))
    return Problem(layered_step(4, names), cluster, objective)


def chosen(memory: int | None, objective: str = "time") -> tuple[str, ...]:
    return with_recompute(partial(problem, memory, objective)).graph.recompute


# The modules that run again, chosen for a cluster.
@pytest.mark.parametrize(
    ("memory", "modules"),
    [(None, ()), (1000, ()), (330, ("l0",)), (230, ("l0", "l1")), (130, ("l0", "l1", "l2"))],
)
def test_as_few_run_again_as_memory_asks_for(memory, modules):
    assert chosen(memory) == modules


def test_memory_that_is_to_be_small_is_made_small():
    result = with_recompute(partial(problem, None, "memory"))
    assert solve(result, evaluations=100).value < 2 * LARGE


def test_those_come_first_that_free_most_for_their_time():
    assert by_gain(problem(None, "time", ("all",))) == ["l0", "l1", "l2", "l3"]


def sum_choice_chosen(adding: float) -> Sums:
    """The order for four slices on four devices."""
    return better_sums(
        *(
            Problem(sliced(1, 1, 1, 1, adding=adding, sums=order), devices(1, 1, 1, 1))
            for order in ("chain", "tree")
        )
    )


# The better order of sums of gradients, by short searches.
def test_slow_additions_of_gradients_that_come_together_want_a_tree():
    assert sum_choice_chosen(adding=10.0) == "tree"


def test_of_equal_orders_it_is_a_chain():
    assert sum_choice_chosen(adding=0.0) == "chain"


def replica_choice_chosen(update: float = 0.0, **machine: float) -> tuple[str, ...]:
    graph = sliced(1, 1, held=(4, 8), update=update, replicas=(1, 1))
    return parameters_once(Problem(graph, devices(1, 1, **machine)))


# Parameters that are better there once than in replicas.
def test_slow_links_want_replicas():
    """Parameters would be waited for when the step begins, and gradients are sent in any case."""
    assert replica_choice_chosen(bandwidth=4.0) == ()


def test_slow_updates_want_parameters_once():
    assert replica_choice_chosen(update=10.0, bandwidth=1e9) == ("a", "b")


def test_little_memory_wants_the_largest_once():
    assert replica_choice_chosen(bandwidth=4.0, memory=25) == ("b",)


def test_without_replicas_there_is_nothing_to_choose():
    assert parameters_once(Problem(chain(3), devices(1, 1))) == ()
