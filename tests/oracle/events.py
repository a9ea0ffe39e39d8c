"""Time advances from event to event: the eager decoder, and serial with overlapped transfers."""

from __future__ import annotations

from tests.oracle.case import Case, Move
from tests.oracle.serial import most_urgent
from tests.oracle.times import Times


class Events:
    """The state of devices, channels and tensors at the instant `now`.

    Args:
        case: the step to run.
        sequence: the order in which devices must take their ops; None lets them choose.
    """

    def __init__(self, case: Case, sequence: list[int] | None = None) -> None:
        self.case = case
        self.choice = case.ops if sequence is None else sequence
        self.in_sequence = sequence is not None
        self.blocking = case.problem.transfers == "blocking"
        self.contention = case.problem.rules.contention
        self.times = Times(case)
        self.now = 0.0
        self.running: list[int] = []
        self.moving: list[Move] = []
        self.signals: list[tuple[int, int]] = []
        self.queue: list[tuple[float, Move]] = []
        """Requested transfers that have not started, each with the instant of its request."""
        self.arrived: set[tuple[int, int]] = set()
        """Tensors, each with a device where it is."""

    def run(self) -> Times:
        while True:
            while self.something_is_due():
                self.end_what_is_due()
            if self.blocking:
                self.start_items()
            else:
                self.start_ops()
            if not self.ends_under_way():
                break
            self.now = min(self.ends_under_way())
        assert len(self.times.op_end) == len(self.case.ops)
        assert len(self.times.move_end) == len(self.case.moves)
        return self.times

    def end_of_op(self, op: int) -> float:
        return self.times.op_end[op]

    def end_of_move(self, move: Move) -> float:
        return self.times.move_end[move.key]

    def end_of_signal(self, signal: tuple[int, int]) -> float:
        return self.times.arrival(*signal)

    def ends_under_way(self) -> list[float]:
        return (
            [self.end_of_op(op) for op in self.running]
            + [self.end_of_move(move) for move in self.moving]
            + [self.end_of_signal(signal) for signal in self.signals]
        )

    def something_is_due(self) -> bool:
        return any(end <= self.now for end in self.ends_under_way())

    def end_what_is_due(self) -> None:
        """Step 1."""
        ended = [op for op in self.running if self.end_of_op(op) <= self.now]
        moved = [move for move in self.moving if self.end_of_move(move) <= self.now]
        signalled = [s for s in self.signals if self.end_of_signal(s) <= self.now]
        self.running = [op for op in self.running if op not in ended]
        self.moving = [move for move in self.moving if move not in moved]
        self.signals = [signal for signal in self.signals if signal not in signalled]
        self.arrived |= {move.key for move in moved} | set(signalled)
        for op in ended:
            self.hand_out(op)
        if not self.blocking:
            self.serve_channels()

    def hand_out(self, op: int) -> None:
        """The op's output is on its device, and on its way to all others that want it."""
        for tensor in self.case.produced[op]:
            self.arrived.add((tensor, self.case.device[op]))
            if self.case.is_signal(tensor):
                self.signals += [(tensor, target) for target in self.case.targets(tensor)]
        self.queue += [(self.now, move) for move in self.case.moves_of(op)]

    def serve_channels(self) -> None:
        """Free channels start the first in their queue."""
        first_come = sorted(self.queue, key=lambda e: (e[0], -e[1].priority, e[1].key))
        for _, move in first_come:
            if self.channel_is_free(move):
                self.start_move(move)

    def channel_is_free(self, move: Move) -> bool:
        return not self.contention or all(m.channel != move.channel for m in self.moving)

    def device_is_idle(self, device: int) -> bool:
        computing = any(self.case.device[op] == device for op in self.running)
        moving = any(device in (move.source, move.target) for move in self.moving)
        return not computing and not (self.blocking and moving)

    def start_move(self, move: Move) -> None:
        self.queue = [entry for entry in self.queue if entry[1] is not move]
        self.moving.append(move)
        self.times.start_move(move, self.now)

    def start_op(self, op: int) -> None:
        self.running.append(op)
        self.times.start_op(op, self.now)

    def start_ops(self) -> None:
        """Step 3, overlapped: every idle device starts an op."""
        for device in self.case.devices:
            ready = self.ready_ops(device)
            if ready:
                self.start_op(min(ready, key=lambda op: (-self.case.priority[op], op)))

    def start_items(self) -> None:
        """Step 3, blocking: the most urgent op or transfer starts, until none can."""
        while True:
            ops = [op for device in self.case.devices for op in self.ready_ops(device)]
            moves = [move for _, move in self.queue if self.can_move(move)]
            if not ops and not moves:
                return
            item = most_urgent(self.case, ops, moves)
            if isinstance(item, Move):
                self.start_move(item)
            else:
                self.start_op(item)

    def can_move(self, move: Move) -> bool:
        ends_are_idle = self.device_is_idle(move.source) and self.device_is_idle(move.target)
        return ends_are_idle and self.channel_is_free(move)

    def ready_ops(self, device: int) -> list[int]:
        """Ops that the device could start now."""
        if not self.device_is_idle(device):
            return []
        waiting = [
            op
            for op in self.choice
            if self.case.device[op] == device and op not in self.times.op_start
        ]
        if self.in_sequence:
            waiting = waiting[:1]
        return [op for op in waiting if self.arrived >= {(t, device) for t in self.case.inputs[op]}]
