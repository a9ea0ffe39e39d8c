"""Costs of ops from measurements: timings, contention, workspace, and the fit of the roofline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.data.costs import Efficiency, MeasuredDevice, Timing
from situate.data.graph import Graph, Op
from situate.data.op_classes import op_class
from situate.data.roofline import peak
from situate.runtime.device import StepRecord

MAX_ROUNDS = 20
"""Most rounds in which ops change sides of the roofline; they settle after a few."""

LAUNCH_COUNTS = tuple(2.0 ** (k / 2) for k in range(15))
"""Candidates for the number of launches that starting an op takes."""

SAME_FACTOR = 1.1
"""Factor up to which two errors, or two times, count as equal."""


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
    durations = np.concatenate(ops)
    low, high = np.quantile(durations, (0.25, 0.75)).tolist()
    mean = float(np.mean(medians))
    # The mean of medians can lie outside the quartiles of all single times.
    return Timing(mean, min(low, mean), max(high, mean), len(durations))


def contention(
    graph: Graph, alone: Mapping[str, Timing], together: Mapping[str, Timing]
) -> dict[str, float]:
    """Factors by op class: the time of a step's ops together over their time alone; at least 1, as
    less is noise."""
    sums: dict[str, list[float]] = {}
    for op in graph.ops:
        if op.signature in alone and op.signature in together:
            medians = sums.setdefault(op_class(op.kind), [0.0, 0.0])
            medians[0] += alone[op.signature].median
            medians[1] += together[op.signature].median
    return {name: max(1.0, b / a) for name, (a, b) in sorted(sums.items()) if a > 0}


def workspace(graph: Graph, record: StepRecord) -> dict[str, int]:
    """Bytes by signature that ops allocated beyond their outputs, where positive.

    These are the kernels' temporary buffers, which a graph captured without values cannot show.
    """
    output_bytes = [0] * len(graph.ops)
    for tensor in graph.tensors:
        output_bytes[tensor.producer] += tensor.size
    workspace_of: dict[str, int] = {}
    for op, nbytes in record.allocated.items():
        if op < len(graph.ops) and (signature := graph.ops[op].signature):
            workspace_of[signature] = max(workspace_of.get(signature, 0), nbytes - output_bytes[op])
    return {signature: nbytes for signature, nbytes in workspace_of.items() if nbytes > 0}


class _Sample(NamedTuple):
    """Seconds of an op: at either peak, and as measured."""

    arithmetic: float
    memory: float
    seconds: float


def efficiencies(ops: Iterable[Op], device: MeasuredDevice) -> dict[str, Efficiency]:
    """Efficiencies by op class, from the device's `seconds`, peaks and `launch`.

    A class without an op that takes longer than a launch is left out. An op is bound by arithmetic
    or by memory; each side's efficiency is the median of its ops, which no outlier moves. The
    number of launches is the smallest with about the least median error (a factor).
    """
    distinct = {op.signature: op for op in ops if op.signature in device.seconds}
    by_class: dict[str, list[_Sample]] = {}
    for op in distinct.values():
        sample = _sample(op, device, device.seconds)
        if sample.seconds > 0 and max(sample[:2]) > 0:
            by_class.setdefault(op_class(op.kind), []).append(sample)
    fits = {name: _fit(np.array(samples).T, device.launch) for name, samples in by_class.items()}
    return {name: fit for name, fit in sorted(fits.items()) if fit is not None}


def _sample(op: Op, device: MeasuredDevice, seconds: Mapping[str, Timing]) -> _Sample:
    bandwidth = np.inf if device.bandwidth is None else device.bandwidth
    arithmetic = op.flops / peak(device.flops, op.dtype)
    return _Sample(arithmetic, op.traffic / bandwidth, seconds[op.signature].median)


def _fit(samples: Floats, launch: float) -> Efficiency | None:
    """The fit of (3, ops) samples with the fewest launches of about the least error."""
    fits = [_with_launches(samples, launch, launches) for launches in LAUNCH_COUNTS]
    usable = [fit for fit in fits if fit is not None]
    least = min((fit.error for fit in usable), default=0.0)
    # Errors are factors from 1 on: a tenth may be lost in the factor, and a tenth in its logarithm,
    # which tells large errors apart.
    same = least**SAME_FACTOR * SAME_FACTOR
    return next((fit for fit in usable if fit.error <= same), None)


def _with_launches(samples: Floats, launch: float, launches: float) -> Efficiency | None:
    """The fit to ops that take longer than their start, with the error over all ops; None without
    such ops."""
    at_peak, seconds, start = samples[:2], samples[2], launch * launches
    long = seconds > SAME_FACTOR * start
    if not long.any():
        return None
    efficiency = _fit_fractions(at_peak[:, long], seconds[long] - start)
    # (ops,) predictions by the roofline: the slower of both sides after the start.
    predicted = start + (at_peak / efficiency[:, None]).max(axis=0)
    # The error is a factor: the median of |log ratio| weighs too fast and too slow alike.
    error = float(np.exp(np.median(np.abs(np.log(predicted / seconds)))))
    arithmetic, memory = efficiency.tolist()
    return Efficiency(arithmetic, memory, launches, len(seconds), error)


def _fit_fractions(at_peak: Floats, seconds: Floats) -> Floats:
    """(2,) fractions of the peaks, from (2, ops) seconds at either peak and measured seconds."""
    reached = at_peak / seconds
    # The start value assumes that every op is bound by the side of which it reaches more.
    efficiency = np.full(2, np.median(reached.max(axis=0)))
    side = np.full(len(seconds), -1)
    for _ in range(MAX_ROUNDS):
        # (2, ops) seconds at the fitted rates: the larger one is the side that binds an op.
        before, side = side, (at_peak / efficiency[:, None]).argmax(axis=0)
        if np.array_equal(side, before):
            break
        efficiency = _side_medians(reached, side)
    return efficiency


def _side_medians(reached: Floats, side: NDArray[np.intp]) -> Floats:
    """Medians of each side's ops; a side without ops takes over the other's."""
    medians = [np.median(reached[i, side == i]) if (side == i).any() else 0.0 for i in (0, 1)]
    return np.array([median or max(medians) for median in medians])
