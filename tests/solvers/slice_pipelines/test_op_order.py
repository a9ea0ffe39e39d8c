"""Ops in the order of their passes."""

from __future__ import annotations

import numpy as np

from situate.data.problem import Problem
from situate.simulation.decoding import is_topological
from situate.solvers.heuristics.gpipe import passes
from situate.solvers.slice_pipelines.line import line_of
from situate.solvers.slice_pipelines.op_order import OpOrders
from situate.solvers.slice_pipelines.passes import ranks
from tests.solvers.families import devices
from tests.solvers.slices import sliced


def ordered(*seconds: float) -> tuple[Problem, np.ndarray]:
    problem = Problem(sliced(*seconds), devices(1, 1))
    turns = [passes(2, len(seconds), device) for device in range(2)]
    orders = OpOrders(problem, line_of(problem))
    return problem, orders.order(ranks(turns, len(seconds), 2), np.array([1]))


def test_a_stage_runs_its_passes_and_a_sum_follows_the_last_gradient_that_it_reads():
    problem, order = ordered(1, 1)
    names = [problem.graph.ops[op].name for op in order]
    of_b = [name for name in names if problem.graph.ops[order[names.index(name)]].module == "b"]
    assert of_b == [
        "b",
        *("slice0/b", "slice1/b", "slice0/gb", "slice1/gb"),
        *("b/add1", "b/sgd"),
    ]


def test_the_order_is_topological():
    assert is_topological(*ordered(1, 2, 3))
