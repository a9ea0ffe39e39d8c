"""Calls of atomic rules: an accelerator starts when all its inputs exist, and ends as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from situate.solvers.exact.clock import Clock
from situate.solvers.exact.loads import loads
from situate.solvers.exact.moves import consumers_of
from situate.solvers.exact.placing import Placing


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
                    if also is not None and not problem.accelerators[device]:
                        local = self._model.add(self._begin[op] >= self.output_time[producer])
                        local.only_enforce_if(here, also)
