"""Dependences in a forward pass."""

from __future__ import annotations

from situate.data.graph import Graph, Op, Tensor
from situate.writers.dependence import dependence, runs_forward


def test_ops_behind_and_ahead_of_the_chosen_are_told():
    tensors = (Tensor("t0", 0, 8, (1,)), Tensor("t1", 1, 8, (2,)))
    graph = Graph("chain", tuple(Op(name) for name in "abcd"), tensors, control=((2, 3),))
    behind, ahead = dependence(graph, [False, True, False, False])
    assert behind == [False, False, True, True]
    assert ahead == [True, False, False, False]


def test_the_backward_pass_depends_on_nothing_chosen():
    ops = (Op("a"), Op("a/back", phase="backward"))
    graph = Graph("step", ops, (Tensor("t", 0, 8, (1,)),))
    assert dependence(graph, [True, False]) == ([False, False], [False, False])
    assert dependence(graph, [False, True]) == ([False, False], [False, False])


def test_parameters_do_not_run():
    assert runs_forward(Op("a", phase="forward"))
    assert not runs_forward(Op("w", "parameter"))
    assert not runs_forward(Op("g", phase="backward"))
