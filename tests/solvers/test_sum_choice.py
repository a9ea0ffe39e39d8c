"""The better order of sums of gradients, by short searches."""

from __future__ import annotations

from situate.data.problem import Problem
from situate.data.slices import Sums
from situate.solvers.sum_choice import better_sums
from tests.solvers.families import devices
from tests.solvers.slices import sliced


def chosen(adding: float) -> Sums:
    """The order for four slices on four devices."""
    return better_sums(
        *(
            Problem(sliced(1, 1, 1, 1, adding=adding, sums=order), devices(1, 1, 1, 1))
            for order in ("chain", "tree")
        )
    )


def test_slow_additions_of_gradients_that_come_together_want_a_tree():
    assert chosen(adding=10.0) == "tree"


def test_of_equal_orders_it_is_a_chain():
    assert chosen(adding=0.0) == "chain"
