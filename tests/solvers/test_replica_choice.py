"""Parameters that are better there once than in replicas."""

from __future__ import annotations

from situate.data.problem import Problem
from situate.solvers.replica_choice import parameters_once
from tests.solvers.families import chain, devices
from tests.solvers.slices import sliced


def chosen(update: float = 0.0, **machine: float) -> tuple[str, ...]:
    graph = sliced(1, 1, held=(4, 8), update=update, replicas=(1, 1))
    return parameters_once(Problem(graph, devices(1, 1, **machine)))


def test_slow_links_want_replicas():
    """Parameters would be waited for when the step begins, and gradients are sent in any case."""
    assert chosen(bandwidth=4.0) == ()


def test_slow_updates_want_parameters_once():
    assert chosen(update=10.0, bandwidth=1e9) == ("a", "b")


def test_little_memory_wants_the_largest_once():
    assert chosen(bandwidth=4.0, memory=25) == ("b",)


def test_without_replicas_there_is_nothing_to_choose():
    assert parameters_once(Problem(chain(3), devices(1, 1))) == ()
