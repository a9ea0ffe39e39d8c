"""Memory that kernels need while they run."""

from __future__ import annotations

from situate.data.graph import Graph, Op, Tensor
from situate.profiling.workspace import workspace
from situate.runtime.device import Ran

GRAPH = Graph(
    "g",
    (Op("a", signature="conv"), Op("b", signature="conv"), Op("c", signature="relu"), Op("d")),
    (Tensor("a:0", 0, 100, (1,)), Tensor("b:0", 1, 100, (2,)), Tensor("c:0", 2, 50, (3,))),
)


def allocated(*most: int) -> Ran:
    return Ran(0.0, 1.0, 0.0, {}, {}, 0, dict(enumerate(most)))


def test_it_is_what_an_op_allocates_beyond_what_it_hands_on() -> None:
    assert workspace(GRAPH, allocated(130, 100, 50, 0)) == {"conv": 30}


def test_of_ops_with_one_signature_the_most_counts() -> None:
    assert workspace(GRAPH, allocated(110, 170, 0, 0)) == {"conv": 70}


def test_ops_without_a_signature_and_marks_behind_the_ops_are_left_out() -> None:
    assert workspace(GRAPH, Ran(0.0, 1.0, 0.0, {}, {}, 0, {3: 900, 4: 900})) == {}
