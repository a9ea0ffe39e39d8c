"""Constraints on the times of a model: loads, starts of ops and transfers, and atomic calls."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from situate.solvers.exact.clock import Clock
from situate.solvers.exact.variables import Placing, consumers_of


def loads(placing: Placing, clock: Clock) -> dict[tuple[str, int], Any]:
    """An expression for the ticks of work of each device and each limiting channel."""
    problem = placing.problem
    ticks = clock.ticks(np.where(np.isfinite(problem.seconds), problem.seconds, 0.0))
    ticks_of_moves = clock.ticks(np.array([move.seconds for move in placing.moves])).tolist()
    work: defaultdict[tuple[str, int], list[Any]] = defaultdict(list)
    for (unit, device), here in placing.on.items():
        work["device", device].append(int(ticks[problem.unit == unit, device].sum()) * here)
    for move, occurs, seconds in zip(placing.moves, placing.occurs, ticks_of_moves, strict=True):
        if problem.transfers == "blocking":
            work["device", move.source].append(seconds * occurs)
        if problem.transfers == "blocking" or _pays(placing, move.target):
            work["device", move.target].append(seconds * occurs)
        if problem.rules.contention and problem.transfers != "atomic":
            channel = int(problem.channel[move.source, move.target])
            work["channel", channel].append(seconds * occurs)
    for source, leaves in _departures(placing, ticks_of_moves):
        work["device", source].append(leaves)
    return {key: sum(terms) for key, terms in work.items()}


def _pays(placing: Placing, device: int) -> bool:
    """True for an accelerator under atomic rules, because its call sends and receives."""
    problem = placing.problem
    return problem.transfers == "atomic" and bool(problem.accelerators[device])


def _departures(placing: Placing, ticks_of_moves: list[int]) -> list[tuple[int, Any]]:
    """(device, variable) for every tensor that may leave an accelerator under atomic rules.

    The variable is the duration of the tensor's slowest transfer.
    """
    departures: dict[tuple[int, int], Any] = {}
    longest = max(ticks_of_moves, default=0)
    for move, occurs, ticks in zip(placing.moves, placing.occurs, ticks_of_moves, strict=True):
        if _pays(placing, move.source):
            key = move.tensor, move.source
            if key not in departures:
                departures[key] = placing.model.new_int_var(0, longest, "")
            placing.model.add(departures[key] >= ticks * occurs)
    return [(source, leaves) for (_, source), leaves in departures.items()]


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
        # This order holds on any devices; without literals it propagates at once.
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
                    # A producer that may not run on the device is elsewhere in any case.
                    elsewhere = [~on[home, device]] if (home, device) in on else []
                    waits = self._model.add(self.start[op] >= later)
                    waits.only_enforce_if(on[unit, device], *elsewhere)


class Calls:
    """The times of calls and of ops on CPUs in a model.

    Args:
        placing: devices of units.
        clock: for durations.

    Attributes:
        makespan: a variable.
        output_time: (n,) variables, the instants at which outputs are available.
    """

    def __init__(self, placing: Placing, clock: Clock) -> None:
        self._placing, self._problem, self._model = placing, placing.problem, placing.model
        self._horizon = clock.horizon
        self._delay = clock.delay(self._problem.cluster.synchronisation)
        self.makespan = self._instant()
        self.output_time = [self._instant() for _ in range(self._problem.n)]
        self._begin = [self._instant() for _ in range(self._problem.n)]
        self._call: dict[int, Any] = {}
        load = loads(placing, clock)
        for device in np.flatnonzero(self._problem.accelerators).tolist():
            self._call[device] = self._instant()
            end = self._call[device] + load.get(("device", device), 0)
            self._model.add(end <= self.makespan)
            self._run(device, end)
        self._run_on_cpus(clock)
        self._wait_for_inputs()

    def _instant(self) -> Any:
        return self._model.new_int_var(0, self._horizon, "")

    def _run(self, device: int, end: Any) -> None:
        """Ops of a call begin with it and end with it."""
        for op, unit in enumerate(self._problem.unit.tolist()):
            if (unit, device) in self._placing.on:
                here = self._placing.on[unit, device]
                self._model.add(self.output_time[op] >= end).only_enforce_if(here)
                self._model.add(self._begin[op] <= self._call[device]).only_enforce_if(here)

    def _run_on_cpus(self, clock: Clock) -> None:
        problem = self._problem
        ticks = clock.ticks(np.where(np.isfinite(problem.seconds), problem.seconds, 0.0))
        for op, unit in enumerate(problem.unit.tolist()):
            self._model.add(self.output_time[op] <= self.makespan)
            for device in self._placing.devices(unit):
                if not problem.accelerators[device]:
                    runs = self._model.add(
                        self.output_time[op] >= self._begin[op] + int(ticks[op, device])
                    )
                    runs.only_enforce_if(self._placing.on[unit, device])

    def _wait_for_inputs(self) -> None:
        """An op begins after inputs from other devices and, on a CPU, after local inputs too."""
        problem, on = self._problem, self._placing.on
        signal = problem.signal
        for tensor, producer in enumerate(problem.producer.tolist()):
            home, delay = self._placing.home(tensor), self._delay if signal[tensor] else 0
            for op in consumers_of(problem, tensor):
                unit = int(problem.unit[op])
                for device in self._placing.devices(unit):
                    here, also = on[unit, device], on.get((home, device))
                    apart = [here] if also is None else [here, ~also]
                    if unit != home:
                        waits = self._model.add(
                            self._begin[op] >= self.output_time[producer] + delay
                        )
                        waits.only_enforce_if(*apart)
                    # A call contains all its ops, so within one an op waits for no other.
                    if also is not None and not problem.accelerators[device]:
                        local = self._model.add(self._begin[op] >= self.output_time[producer])
                        local.only_enforce_if(here, also)
