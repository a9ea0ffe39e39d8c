"""The order in which the serial decoder takes items, and its timing with blocking transfers."""

from __future__ import annotations

from tests.oracle.case import Case, Move
from tests.oracle.times import Times


def op_order(case: Case) -> list[int]:
    """Overlapped: ops are the only items; one is open when all its producers have been taken."""
    order: list[int] = []
    while len(order) < len(case.ops):
        open_ops = [
            j
            for j in case.ops
            if j not in order and all(case.producer[t] in order for t in case.inputs[j])
        ]
        order.append(min(open_ops, key=lambda j: (-case.priority[j], j)))
    return order


def item_order(case: Case) -> list[int | Move]:
    """Blocking: ops (as their index) and transfers in the order in which they are taken."""
    order: list[int | Move] = []
    placed: set[int | tuple[int, int]] = set()
    while len(order) < len(case.ops) + len(case.moves):
        ops = [j for j in case.ops if j not in placed and needs(case, j) <= placed]
        moves = [m for m in case.moves if m.key not in placed and case.producer[m.tensor] in placed]
        item = most_urgent(case, ops, moves)
        order.append(item)
        placed.add(item.key if isinstance(item, Move) else item)
    return order


def needs(case: Case, op: int) -> set[int | tuple[int, int]]:
    """The inputs that an op waits for: local producers, transfers, producers of remote signals."""
    here = case.device[op]
    return {
        case.producer[t] if case.home(t) == here or case.is_signal(t) else (t, here)
        for t in case.inputs[op]
    }


def most_urgent(case: Case, ops: list[int], moves: list[Move]) -> int | Move:
    """The item of highest priority; an op before a transfer, then the lower index."""
    best_op = min(ops, key=lambda j: (-case.priority[j], j), default=None)
    best_move = min(moves, key=lambda m: (-m.priority, m.key), default=None)
    if best_op is None:
        assert best_move is not None
        return best_move
    if best_move is None or case.priority[best_op] >= best_move.priority:
        return best_op
    return best_move


def blocking_times(case: Case) -> Times:
    """Every item starts when its devices, its channel and its dependencies allow."""
    times = Times(case)
    device_free = dict.fromkeys(case.devices, 0.0)
    channel_free = dict.fromkeys([move.channel for move in case.moves], 0.0)
    for item in item_order(case):
        if isinstance(item, Move):
            start = max(
                device_free[item.source],
                device_free[item.target],
                channel_free[item.channel] if case.problem.rules.contention else 0.0,
                times.op_end[case.producer[item.tensor]],
            )
            times.start_move(item, start)
            end = times.move_end[item.key]
            device_free[item.source] = device_free[item.target] = channel_free[item.channel] = end
        else:
            here = case.device[item]
            start = max([device_free[here]] + [times.arrival(t, here) for t in case.inputs[item]])
            times.start_op(item, start)
            device_free[here] = times.op_end[item]
    return times
