"""Ops of a backward pass that only make gradients of parameters, and nothing else waits for."""

from __future__ import annotations

import numpy as np

from situate.data.arrays import Bools
from situate.data.problem import Problem


def weight_gradients(problem: Problem) -> Bools:
    """(n,) whether an op of a slice's backward pass belongs to its half W: an op whose result only
    goes to what runs once a step, as the sums of gradients do, or to no op at all, and an op that
    makes all that one of these reads for it alone, as the product that is transposed.

    Where one op makes the gradients of inputs and of weights, as that of a convolution, it is none.
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
