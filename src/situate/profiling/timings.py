"""Seconds and workspace of ops, from the records of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low

import numpy as np

from situate.data.costs import Timing
from situate.data.graph import Graph
from situate.data.op_classes import op_class
from situate.runtime.device import StepRecord


def timings(graph: Graph, steps: Sequence[StepRecord], look: float) -> dict[str, Timing]:
    """Timings by signature, from several runs of a whole step.

    An op takes its median over the steps (the lower of two), a signature the mean of its ops. So
    disturbances drop out, and the sum over all ops is the step's time.

    Args:
        look: seconds of reading the clock.
    """
    ops = [op for op in steps[0].op_starts if op < len(graph.ops)]
    # The interval between two clock readings includes one reading.
    of_op = {op: [max(0.0, s.op_ends[op] - s.op_starts[op] - look) for s in steps] for op in ops}
    by_signature: dict[str, list[int]] = {}
    for op in ops:
        if signature := graph.ops[op].signature:
            by_signature.setdefault(signature, []).append(op)
    return {name: _timing([of_op[op] for op in ops]) for name, ops in by_signature.items()}


def _timing(ops: Sequence[list[float]]) -> Timing:
    medians = [median_low(seconds) for seconds in ops]
    every = np.concatenate(ops)
    low, high = np.quantile(every, (0.25, 0.75)).tolist()
    mean = float(np.mean(medians))
    # The mean of medians can lie outside the quartiles of all single times.
    return Timing(mean, min(low, mean), max(high, mean), len(every))


def contention(
    graph: Graph, alone: Mapping[str, Timing], together: Mapping[str, Timing]
) -> dict[str, float]:
    """Factors by op class: the time of a step's ops together over their time alone; at least 1, as
    less is noise."""
    sums: dict[str, list[float]] = {}
    for op in graph.ops:
        if op.signature in alone and op.signature in together:
            both = sums.setdefault(op_class(op.kind), [0.0, 0.0])
            both[0] += alone[op.signature].median
            both[1] += together[op.signature].median
    return {name: max(1.0, b / a) for name, (a, b) in sorted(sums.items()) if a > 0}


def workspace(graph: Graph, record: StepRecord) -> dict[str, int]:
    """Bytes by signature that ops allocated beyond their outputs, where positive.

    These are the kernels' temporary buffers, which a graph captured without values cannot show.
    """
    output_bytes = [0] * len(graph.ops)
    for tensor in graph.tensors:
        output_bytes[tensor.producer] += tensor.size
    workspace_of: dict[str, int] = {}
    for op, peak in record.allocated.items():
        if op < len(graph.ops) and (signature := graph.ops[op].signature):
            workspace_of[signature] = max(workspace_of.get(signature, 0), peak - output_bytes[op])
    return {signature: nbytes for signature, nbytes in workspace_of.items() if nbytes > 0}
