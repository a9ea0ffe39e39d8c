"""When every op and transfer starts and ends, as far as it is known."""

from __future__ import annotations

from tests.oracle.case import Case, Move


class Times:
    """Filled in by a decoder as it starts items."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.op_start: dict[int, float] = {}
        self.op_end: dict[int, float] = {}
        self.move_start: dict[tuple[int, int], float] = {}
        self.move_end: dict[tuple[int, int], float] = {}
        self.sequence: list[int | Move] = []
        """Ops and transfers in the order in which they were taken."""

    def start_op(self, op: int, start: float) -> None:
        self.sequence.append(op)
        self.op_start[op] = start
        self.op_end[op] = start + self.case.seconds[op]

    def start_move(self, move: Move, start: float) -> None:
        self.sequence.append(move)
        self.move_start[move.key] = start
        self.move_end[move.key] = start + move.seconds

    def arrival(self, tensor: int, device: int) -> float:
        """When a tensor arrives on a device; its producer or transfer must have been started."""
        case, home = self.case, self.case.home(tensor)
        produced = self.op_end[case.producer[tensor]]
        if home == device:
            return produced
        if case.is_signal(tensor):
            return produced + case.problem.transfer_time(tensor, home, device)
        return self.move_end[tensor, device]

    @property
    def makespan(self) -> float:
        return max([*self.op_end.values(), *self.move_end.values()])
