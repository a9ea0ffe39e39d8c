"""The input for which each op waited longest, and the critical path as items."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.data.topology import edge_tensors
from situate.report.critical import Kind, critical_path
from situate.report.text import tensor_name
from situate.schedule.schedule import Schedule

KINDS: tuple[str, ...] = get_args(Kind)
"""Kinds of the segments of a critical path; columns hold their indices."""


def last_inputs(problem: Problem, schedule: Schedule) -> NDArray[np.int32]:
    """(n,) the tensor of each op that arrives last on the op's device; -1 without inputs."""
    tensors, readers = edge_tensors(problem), problem.consumers
    arrival = _arrivals(problem, schedule, tensors, schedule.placement[readers])
    order = np.lexsort((arrival, readers))
    inputs = np.full(problem.n, -1, np.int32)
    # Sorted by reader and then by arrival, the last of several assignments is the latest input.
    inputs[readers[order]] = tensors[order]
    return inputs


def _arrivals(
    problem: Problem, schedule: Schedule, tensors: NDArray[np.int64], devices: NDArray[np.int32]
) -> NDArray[np.float64]:
    """The time at which each tensor is on a device: the end of its transfer or its producer."""
    arrival: NDArray[np.float64] = schedule.end[problem.producer[tensors]]
    if not len(schedule.tensor):
        return arrival
    # A tensor goes to a device once, so both are a key of the transfer.
    keys = schedule.tensor.astype(np.int64) * problem.d + schedule.target
    order = np.argsort(keys)
    edge_keys = tensors.astype(np.int64) * problem.d + devices
    # Keys above the last have no place; the comparison below leaves them out.
    place = np.minimum(np.searchsorted(keys[order], edge_keys), len(keys) - 1)
    transfer = order[place]
    return np.where(keys[transfer] == edge_keys, schedule.transfer_end[transfer], arrival)


def path_columns(problem: Problem, schedule: Schedule) -> dict[str, NDArray[np.generic]]:
    """The critical path: op j is item j, transfer k is n + k.

    Returns:
        `item`, `kind` (index into `KINDS`), `start`, `end`: (segments,) in order of time.
    """
    ops = {op.name: j for j, op in enumerate(problem.graph.ops)}
    names = problem.cluster.names
    moves = zip(schedule.tensor.tolist(), schedule.target.tolist(), strict=True)
    transfers = {
        (tensor_name(problem, tensor), names[target]): problem.n + k
        for k, (tensor, target) in enumerate(moves)
    }
    elements = critical_path(problem, schedule).elements
    items = [
        transfers[e.name, e.device] if e.source else ops[e.name] for e in elements
    ]  # a segment of a transfer names its sender
    return {
        "item": np.array(items, np.uint32),
        "kind": np.array([KINDS.index(e.kind) for e in elements], np.uint8),
        "start": np.array([e.start for e in elements], np.float64),
        "end": np.array([e.end for e in elements], np.float64),
    }
