"""Seconds of collectives among equal GPUs, in rings or trees, inside nodes and across them.

The costs are those of Thakur et al. (2005, "Optimization of Collective Communication Operations in
MPICH") with NCCL's two levels: a group that spans nodes first works inside each node, then among
the nodes with all their adapters.
"""

from __future__ import annotations

import numpy as np

from situate.language.training.layout import Floats
from situate.language.training.machine import Machine

Sizes = Floats | float

START = 35e-6
"""Seconds of a collective beside its steps: its kernel starts on all GPUs (all-reduces of 1 MiB
among two to eight A100; VIA-Research/vTrain, `trace/a100`)."""


def _group_shape(machine: Machine, size: Floats, stride: Floats) -> tuple[Floats, Floats]:
    """(layouts,) GPUs of a group in one node, and nodes of the group.

    Args:
        machine: with its nodes.
        size: GPUs of the group.
        stride: distance of neighbours in the group, in ranks.
    """
    inside = np.clip(machine.node // np.maximum(stride, 1), 1, np.maximum(size, 1))
    return inside, np.ceil(size / inside)


def gather_seconds(machine: Machine, size: Floats, stride: Floats, amount: Sizes) -> Floats:
    """(layouts,) seconds of an all-gather or of a reduce-scatter.

    Args:
        machine: its links.
        size, stride: of the group.
        amount: bytes of the whole result, or of the whole input.
    """
    return _started(size, _ring_seconds(machine, size, stride, amount))


def _started(size: Floats, seconds: Floats) -> Floats:
    """(layouts,) seconds of a collective with its start; 0 in groups of one."""
    result: Floats = np.where(size > 1, seconds + START, 0.0)
    return result


def _ring_seconds(machine: Machine, size: Floats, stride: Floats, amount: Sizes) -> Floats:
    """(layouts,) seconds in which each byte passes all GPUs of a ring."""
    inside, nodes = _group_shape(machine, size, stride)
    share = (size - 1) / np.maximum(size, 1)
    # Groups side by side in a node share its adapters.
    groups = machine.node / inside
    link = amount * (inside - 1) / np.maximum(inside, 1) / machine.link
    across = np.where(nodes > 1, amount * share * groups / machine.network, 0.0)
    steps = (inside - 1) * machine.latency + (nodes - 1) * machine.network_latency
    seconds: Floats = np.maximum(link, across) + steps
    return seconds


def reduce_seconds(machine: Machine, size: Floats, stride: Floats, amount: Sizes) -> Floats:
    """(layouts,) seconds of an all-reduce of so many bytes: a reduce-scatter and an all-gather.

    Small messages take NCCL's tree, whose steps grow with the logarithm of the group.
    """
    ring = 2 * _ring_seconds(machine, size, stride, amount)
    inside, nodes = _group_shape(machine, size, stride)
    # All GPUs of a node share its network; the group has the part of its own.
    slowest = np.where(nodes > 1, machine.network * inside / machine.node, machine.link)
    steps = 2 * np.log2(np.maximum(size, 1))
    latency = np.where(nodes > 1, machine.network_latency, machine.latency)
    return _started(size, np.minimum(ring, 2 * amount / slowest + steps * latency))


def exchange_seconds(machine: Machine, size: Floats, amount: Sizes, copies: int) -> Floats:
    """(layouts,) seconds in which tokens go from each GPU of a group to random others.

    A token goes once to each node, and there once to each GPU, that has one of its experts.

    Args:
        machine: its links.
        size: GPUs of the group, which are neighbours.
        amount: bytes of the tokens of a GPU.
        copies: experts of a token.
    """
    inside, nodes = _group_shape(machine, size, np.ones_like(size))
    # n (1 - (1 - 1/n)^k): expected number of different targets of k uniform draws from n.
    reached = nodes * (1 - (1 - 1 / np.maximum(nodes, 1)) ** copies)
    gpus = size * (1 - (1 - 1 / np.maximum(size, 1)) ** copies)
    away = amount * reached * (1 - 1 / nodes)
    near = amount * gpus * (1 - 1 / np.maximum(inside, 1))
    return _paired(machine, size, nodes, near, away)


def copies_seconds(machine: Machine, size: Floats, amount: Sizes, copies: int) -> Floats:
    """(layouts,) seconds in which each copy of a token goes to a random GPU of a group by itself.

    Args:
        machine, size, amount, copies: as in `exchange_seconds`.
    """
    inside, nodes = _group_shape(machine, size, np.ones_like(size))
    near = amount * copies * (inside - 1) / np.maximum(size, 1)
    away = amount * copies * (1 - 1 / nodes)
    return _paired(machine, size, nodes, near, away)


def _paired(machine: Machine, size: Floats, nodes: Floats, near: Floats, away: Floats) -> Floats:
    """(layouts,) seconds of messages to GPUs of the node and to others, at the same time."""
    across = np.where(nodes > 1, away * machine.node / machine.network, 0.0)
    latency = np.where(nodes > 1, machine.network_latency, machine.latency)
    slowest = np.maximum(near / machine.link, across)
    seconds: Floats = np.where(size > 1, slowest + latency, 0.0)
    return seconds


def send_seconds(machine: Machine, stride: Floats, amount: Sizes) -> Floats:
    """(layouts,) seconds of a message to the GPU that is so many ranks away."""
    far = stride >= machine.node
    # All GPUs of a node send at once through its network.
    speed = np.where(far, machine.network / machine.node, machine.link)
    seconds: Floats = amount / speed + np.where(far, machine.network_latency, machine.latency)
    return seconds
