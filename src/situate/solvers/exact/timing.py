"""Starts of ops and transfers: devices and channels process one at a time, in any order."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from situate.solvers.exact.clock import Clock
from situate.solvers.exact.loads import loads
from situate.solvers.exact.moves import consumers_of
from situate.solvers.exact.placing import Placing


class Timing:
    """The times of ops and transfers in a model.

    Every schedule of the execution model, its times rounded down, is a solution. Not every solution
    is a schedule: devices and channels may idle, and channels take transfers in any order.

    Args:
        placing: devices of units.
        clock: for durations.

    Attributes:
        start, end: (n,) a variable and an expression for every op.
        ticks: (n, d) durations.
        sent: by (tensor, target), the variable of the transfer's start.
        move_ticks: (moves,) durations of transfers.
        makespan: a variable.
        running: by (op, allowed device), the interval of the op.
    """

    def __init__(self, placing: Placing, clock: Clock) -> None:
        self._placing, self._problem, self._model = placing, placing.problem, placing.model
        self._horizon = clock.horizon
        self.ticks = clock.ticks(
            np.where(np.isfinite(self._problem.seconds), self._problem.seconds, 0)
        )
        self.move_ticks = clock.ticks(np.array([move.seconds for move in placing.moves])).tolist()
        self._delay = clock.delay(self._problem.cluster.synchronisation)
        self.start = [self.instant() for _ in range(self._problem.n)]
        self.end = [start + self._duration(op) for op, start in enumerate(self.start)]
        self.sent = {arrival: self.instant() for arrival in placing.received}
        self.makespan = self.instant()
        self.running: dict[tuple[int, int], Any] = {}
        self._occupied: defaultdict[tuple[str, int], list[Any]] = defaultdict(list)
        self._run_ops()
        self._run_moves()
        self._wait_for_inputs()
        # Implied by the no-overlap constraints, but these sums tighten the linear relaxation.
        for load in loads(placing, clock).values():
            self._model.add(load <= self.makespan)
        for intervals in self._occupied.values():
            self._model.add_no_overlap(intervals)

    def instant(self) -> Any:
        """A variable between the start of the step and the horizon."""
        self._placing.go_on()
        return self._model.new_int_var(0, self._horizon, "")

    def _duration(self, op: int) -> Any:
        """The ticks of an op, as an expression."""
        unit = int(self._problem.unit[op])
        devices = self._placing.devices(unit)
        ticks = self.ticks[op, devices].tolist()
        if len(set(ticks)) == 1:
            return ticks[0]
        return sum(t * self._placing.on[unit, d] for t, d in zip(ticks, devices, strict=True))

    def _run_ops(self) -> None:
        """One op at a time on every device."""
        for op, start in enumerate(self.start):
            self._model.add(self.end[op] <= self.makespan)
            unit = int(self._problem.unit[op])
            for device in self._placing.devices(unit):
                ticks, here = int(self.ticks[op, device]), self._placing.on[unit, device]
                self.running[op, device] = self._interval(start, ticks, here)
                self._occupied["device", device].append(self.running[op, device])

    def _interval(self, start: Any, ticks: int, present: Any) -> Any:
        self._placing.go_on()
        return self._model.new_optional_fixed_size_interval_var(start, ticks, present, "")

    def _run_moves(self) -> None:
        """A transfer begins after its producer and occupies devices or a channel, by the rules."""
        problem = self._problem
        blocking = problem.transfers == "blocking"
        moves = zip(self._placing.moves, self._placing.occurs, self.move_ticks, strict=True)
        for move, occurs, ticks in moves:
            start, model = self.sent[move.arrival], self._model
            model.add(start >= self.end[problem.producer[move.tensor]]).only_enforce_if(occurs)
            model.add(start + ticks <= self.makespan).only_enforce_if(occurs)
            interval = self._interval(start, ticks, occurs)
            if blocking:
                self._occupied["device", move.source].append(interval)
                self._occupied["device", move.target].append(interval)
            if problem.rules.contention:
                channel = int(problem.channel[move.source, move.target])
                self._occupied["channel", channel].append(interval)

    def _wait_for_inputs(self) -> None:
        """An op starts when its inputs exist and those from other devices have arrived."""
        problem, model, on = self._problem, self._model, self._placing.on
        for tensor, producer in enumerate(problem.producer.tolist()):
            self._placing.go_on()
            for op in consumers_of(problem, tensor):
                model.add(self.start[op] >= self.end[producer])
        for move, occurs, ticks in zip(
            self._placing.moves, self._placing.occurs, self.move_ticks, strict=True
        ):
            self._placing.go_on()
            arrived = self.sent[move.arrival] + ticks
            for op in self._placing.readers(move.tensor, move.target):
                here = on[int(problem.unit[op]), move.target]
                model.add(self.start[op] >= arrived).only_enforce_if(occurs, here)
        if self._delay:
            self._wait_for_signals()

    def _wait_for_signals(self) -> None:
        problem, on = self._problem, self._placing.on
        for tensor in np.flatnonzero(problem.signal).tolist():
            producer, home = int(problem.producer[tensor]), self._placing.home(tensor)
            for op in consumers_of(problem, tensor):
                unit = int(problem.unit[op])
                later = self.end[producer] + self._delay
                for device in self._placing.devices(unit) if unit != home else []:
                    elsewhere = [~on[home, device]] if (home, device) in on else []
                    waits = self._model.add(self.start[op] >= later)
                    waits.only_enforce_if(on[unit, device], *elsewhere)
