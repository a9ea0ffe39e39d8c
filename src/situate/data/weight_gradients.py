"""Ops of a backward pass that only make gradients of parameters, and nothing else waits for."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Bools, Ints
from situate.data.problem import Problem


def weight_gradients(problem: Problem, slices: Ints | None = None) -> Bools:
    """(n,) true for ops in the weight half W of a slice's backward pass.

    The result of such an op goes only to ops that run once a step, such as sums of gradients, or to
    no op at all. An op that produces inputs only for one of these ops, such as a transposed
    product, belongs to W too. An op that makes the gradients of both inputs and weights, as for a
    convolution, does not.

    Args:
        slices: (n,) of each op, -1 for ops that run once a step; None for those of the graph.
    """
    if slices is None:
        slices = np.array([-1 if op.slice is None else op.slice for op in problem.graph.ops])
    sliced = slices >= 0
    backward = sliced & np.array([op.phase == "backward" for op in problem.graph.ops])
    inputs: list[set[int]] = [set() for _ in range(problem.n)]
    readers: list[set[int]] = [set() for _ in range(problem.n)]
    for producer, consumer in problem.graph.edges():
        inputs[consumer].add(producer)
        readers[producer].add(consumer)
    is_weight_gradient: Bools = backward & np.array(
        [not any(sliced[op] for op in after) for after in readers]
    )
    for op in reversed(problem.graph.order):
        if is_weight_gradient[op] and all(
            backward[other] and readers[other] == {op} for other in inputs[op]
        ):
            is_weight_gradient[list(inputs[op])] = True
    return is_weight_gradient
