"""Live bytes of tensors, workspaces and persistent units in a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from situate.bounds.rounding import EPSILON
from situate.data.topology import inputs_of_ops
from situate.solvers.exact.clock import Bytes
from situate.solvers.exact.constraints import Timing
from situate.solvers.exact.variables import Placing, consumers_of


class Lifetimes:
    """Limits on the live bytes of a model, by one cumulative constraint per device.

    If transfers block and memory is counted per step, live bytes are exact at every instant,
    because each change of a device's memory has the device to itself. Otherwise a tensor may be
    freed when its last reader starts, so its life ends there.

    Args:
        placing, timing: devices and times of ops and transfers.
        sizes: the unit of bytes.
        limit: an expression in that unit for each device with limited memory.
    """

    def __init__(
        self, placing: Placing, timing: Timing, sizes: Bytes, limit: Mapping[int, Any]
    ) -> None:
        self._placing, self._timing = placing, timing
        self._problem, self._model = placing.problem, placing.model
        rules = self._problem.rules
        self._until_start = rules.memory == "step" and self._problem.transfers != "blocking"
        self._size = [sizes.whole(size) for size in self._problem.size.tolist()]
        self._workspace = [sizes.whole(size) for size in self._problem.workspace.tolist()]
        self._demands: defaultdict[int, list[tuple[Any, int]]] = defaultdict(list)
        free = room_beside_persistent(placing, sizes, limit)
        for tensor, size in enumerate(self._size):
            if size:
                self._keep_at_home(tensor)
                self._keep_elsewhere(tensor)
        self._work()
        for device, room in free.items():
            if self._demands[device]:
                intervals, demands = zip(*self._demands[device], strict=True)
                self._model.add_cumulative(intervals, demands, room)
        self._hold_at_once(free)

    def _keep_at_home(self, tensor: int) -> None:
        """A tensor lives until its producer, its local readers and its transfers have ended.

        A resident tensor is part of its producer's persistent bytes.
        """
        problem, timing, model = self._problem, self._timing, self._model
        if problem.resident[tensor]:
            return
        producer, home = int(problem.producer[tensor]), self._placing.home(tensor)
        begin, death = timing.start[producer], timing.instant()
        if not self._until_start:
            model.add(death >= timing.end[producer])
        if problem.output[tensor]:
            model.add(death >= timing.makespan)
        self._until_read_at_home(tensor, death)
        for index in self._placing.moves_from_home.get(tensor, ()):
            move, occurs = self._placing.moves[index], self._placing.occurs[index]
            ticks = 0 if self._until_start else timing.move_ticks[index]
            model.add(death >= timing.sent[move.arrival] + ticks).only_enforce_if(occurs)
        for device in self._placing.devices(home):
            self._live(device, begin, death, self._placing.on[home, device], self._size[tensor])

    def _until_read_at_home(self, tensor: int, death: Any) -> None:
        problem, on, home = self._problem, self._placing.on, self._placing.home(tensor)
        for op in consumers_of(problem, tensor):
            unit = int(problem.unit[op])
            for device in self._placing.devices(home):
                if (unit, device) in on:
                    constraint = self._model.add(death >= self._read_end(op))
                    constraint.only_enforce_if(on[home, device], on[unit, device])

    def _keep_elsewhere(self, tensor: int) -> None:
        """A copy of a tensor on another device lives from its transfer's start to its last reader
        there."""
        for arrival in self._placing.arrivals_of.get(tensor, ()):
            target, received = arrival[1], self._placing.received[arrival]
            begin, death = self._timing.sent[arrival], self._timing.instant()
            for op in self._placing.readers(tensor, target):
                there = self._placing.on[int(self._problem.unit[op]), target]
                self._model.add(death >= self._read_end(op)).only_enforce_if(received, there)
            self._live(target, begin, death, received, self._size[tensor])

    def _read_end(self, op: int) -> Any:
        """The instant at which an op has read its inputs."""
        return (self._timing.start if self._until_start else self._timing.end)[op]

    def _live(self, device: int, begin: Any, death: Any, present: Any, size: int) -> None:
        # CP-SAT's intervals need a length, too; it adds begin + lasts = death itself.
        lasts = self._timing.instant()
        life = self._model.new_optional_interval_var(begin, lasts, death, present, "")
        self._demands[device].append((life, size))

    def _work(self) -> None:
        """An op's workspace while it runs."""
        for op, size in enumerate(self._workspace):
            unit = int(self._problem.unit[op])
            for device in self._placing.devices(unit) if size and not self._until_start else ():
                running = self._timing.running[op, device]
                self._demands[device].append((running, size))

    def _hold_at_once(self, free: Mapping[int, Any]) -> None:
        """Require room for the inputs, outputs and workspace of each op together.

        The cumulative constraint does not imply this, because rounding may make an op too short.
        """
        problem = self._problem
        # (n, d) True if an op certainly ends after it starts; per step all ops count.
        long = problem.seconds > EPSILON * problem.serial_seconds
        long |= problem.rules.memory == "step"
        inputs = inputs_of_ops(problem)
        outputs: defaultdict[int, list[int]] = defaultdict(list)
        for tensor, producer in enumerate(problem.producer.tolist()):
            outputs[producer].append(tensor)
        for op in range(problem.n):
            live = [t for t in (*inputs[op], *outputs[op]) if not problem.resident[t]]
            need = self._workspace[op] + sum(self._size[t] for t in live)
            unit = int(problem.unit[op])
            for device in self._placing.devices(unit) if need else ():
                if device in free and long[op, device]:
                    here = self._placing.on[unit, device]
                    self._model.add(free[device] >= need).only_enforce_if(here)


def room_beside_persistent(
    placing: Placing, sizes: Bytes, limit: Mapping[int, Any]
) -> dict[int, Any]:
    """Variables for the bytes of devices beside the persistent bytes of their units."""
    problem, model = placing.problem, placing.model
    free = {}
    for device, most in limit.items():
        units = np.flatnonzero(problem.allowed[:, device]).tolist()
        persistent = [
            sizes.whole(int(problem.unit_persistent[unit])) * placing.on[unit, device]
            for unit in units
        ]
        free[device] = model.new_int_var(0, sizes.total, "")
        model.add(free[device] + sum(persistent) <= most)
    return free
