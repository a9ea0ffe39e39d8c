"""Ops of a backward pass that only make gradients of parameters, and nothing else waits for."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Bools
from situate.data.problem import Problem


def weight_gradients(problem: Problem) -> Bools:
    """(n,) true for ops in the weight half W of a slice's backward pass.

    The result of such an op goes only to ops that run once a step, such as sums of gradients, or to
    no op at all. An op that produces inputs only for one of these ops, such as a transposed
    product, belongs to W too. An op that makes the gradients of both inputs and weights, as for a
    convolution, does not.
    """
    sliced = np.array([op.slice is not None for op in problem.graph.ops])
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
