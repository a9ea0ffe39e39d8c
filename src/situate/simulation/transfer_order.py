"""The urgency of transfers among the ops, as an explicit part of a decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Order, Placement
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule


@dataclass(frozen=True, eq=False)
class TransferOrder:
    """All transfers of a placement except signals, the most urgent first.

    Attributes:
        tensor: (k,) tensor of each transfer.
        target: (k,) receiving device.
        place: (k,) number of more urgent ops, in non-decreasing order.
    """

    tensor: NDArray[np.int32]
    target: NDArray[np.int32]
    place: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.tensor)

    @property
    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Tensors, targets and places (k,), in the order of the core's arguments."""
        return self.tensor, self.target, self.place

    def priorities(
        self, problem: Problem, order: Order
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Priorities (n,) of the ops and (m, d) of the transfers.

        The most urgent item has the largest priority, and the last has 1.
        """
        total = problem.n + len(self)
        # (n,) transfers before the op at each place of the order.
        ahead = np.searchsorted(self.place, np.arange(problem.n), side="right")
        of_ops = np.empty(problem.n, np.float32)
        # `total` minus the number of more urgent items, ops and transfers alike.
        of_ops[order] = total - (np.arange(problem.n) + ahead)
        of_transfers = np.zeros((len(problem.size), problem.d), np.float32)
        of_transfers[self.tensor, self.target] = total - (np.arange(len(self)) + self.place)
        return of_ops, of_transfers


def transfer_pairs(
    problem: Problem, placement: Placement
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Tensors (k,) and targets (k,) of a placement's transfers except signals, each once."""
    tensor = np.repeat(np.arange(len(problem.size)), np.diff(problem.consumer_start))
    target = placement[problem.consumers]
    leaves = (target != placement[problem.producer[tensor]]) & ~problem.signal[tensor]
    # A pair is one number, of which `unique` leaves one each, in rising order.
    pairs = np.unique(tensor[leaves] * problem.d + target[leaves])
    return (pairs // problem.d).astype(np.int32), (pairs % problem.d).astype(np.int32)


def instant(problem: Problem) -> NDArray[np.bool_]:
    """(m,) true if transfers of a tensor take no time on any devices; false for signals."""
    # The diagonal is no transfer, although its latency is zero.
    between = ~np.eye(problem.d, dtype=bool)
    unlimited = bool(np.isinf(problem.bandwidth[between]).all())
    by_links = ((problem.size == 0) | unlimited) & (not problem.latency[between].any())
    own = problem.transfer_seconds
    free = np.where(np.isnan(own), by_links, own == 0) & (problem.cluster.synchronisation == 0)
    return np.asarray(free & ~problem.signal)


def by_priority(
    problem: Problem,
    placement: Placement,
    of_ops: NDArray[np.float32],
    of_transfers: NDArray[np.float32],
) -> tuple[Order, TransferOrder]:
    """The order (n,) of ops and the order of transfers by priorities (n,), (m, d).

    At equal priority an op goes before a transfer, then the lower index.
    """
    n = problem.n
    tensor, target = transfer_pairs(problem, placement)
    # (n + k,) ops, then transfers by tensor and target: the order in which ties are resolved.
    priority = np.concatenate((of_ops, of_transfers[tensor, target]))
    urgent = np.argsort(-priority, kind="stable")
    is_op = urgent < n
    item = urgent[~is_op] - n
    place = np.cumsum(is_op)[~is_op]
    order = urgent[is_op].astype(np.int32)
    return order, TransferOrder(tensor[item], target[item], place.astype(np.int32))


def by_sequence(
    problem: Problem, schedule: Schedule, placement: Placement
) -> tuple[Order, TransferOrder]:
    """The order (n,) of ops and the order of a placement's transfers, by a schedule's sequence.

    A transfer that is not in the schedule is as urgent as its most urgent consumer.
    """
    sequence = schedule.sequence
    priority = np.zeros(problem.n + len(schedule.tensor), np.float32)
    priority[sequence] = np.arange(len(sequence), 0, -1)
    of_ops, of_sent = priority[: problem.n], priority[problem.n :]
    of_transfers = np.zeros((len(problem.size), problem.d), np.float32)
    tensor = np.repeat(np.arange(len(problem.size)), np.diff(problem.consumer_start))
    consumers = problem.consumers
    # All possible transfers first; those of the schedule then get the urgency that they had.
    np.maximum.at(of_transfers, (tensor, placement[consumers]), of_ops[consumers])
    of_transfers[schedule.tensor, schedule.target] = of_sent
    return by_priority(problem, placement, of_ops, of_transfers)
