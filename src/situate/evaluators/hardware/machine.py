"""This machine as an evaluator: it runs placements and times their steps."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from situate import zoo
from situate.data.arrays import Placement
from situate.data.placements import rows
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.hardware.workers import HardwareWorkers
from situate.evaluators.measurements import FINALISTS, OUTCOMES, Measurements, Outcome
from situate.evaluators.steps import Steps, has_enough_steps, repetition_text, standard_error
from situate.host.machine import cpu_name
from situate.runtime.hardware import check_devices, real_devices
from situate.runtime.measure import arguments, finite_loss
from situate.runtime.model_state import optimizers
from situate.runtime.processes.messages import StepFailed
from situate.runtime.programs.placed import place
from situate.runtime.step import PlacedStep
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import naming, order_of, scheduled
from situate.simulation.simulator import Simulator

if TYPE_CHECKING:
    import torch

    from situate.runtime.subject import Subject

MEASUREMENT_LIMIT_SECONDS = 60.0
"""Most seconds for all steps of a placement."""


@dataclass(frozen=True)
class Measurement:
    """The measurement of one placement.

    Attributes:
        seconds: median step time, or the aggregate by the rule of `by`; infinite after a failure.
        outcome: one of `OUTCOMES`.
        error: standard error of the mean, as a fraction of it; NaN for fewer than two steps.
        steps: number of timed steps.
        failure: reason of a failure, in one line.
    """

    seconds: float
    outcome: Outcome = "ok"
    error: float = np.nan
    steps: int = 0
    failure: str = ""


class RealMachine:
    """Runs placements on the devices of this machine; a context manager that ends its processes.

    The devices' processes serve one placement after the other. After any failure of a placement
    they are killed and replaced.

    Args:
        problem: a graph on a cluster of this machine's devices.
        subject: the model that the graph was captured from. Training uses a learning rate of
            zero, so every placement starts from its current parameters.
        limit: seconds before a placement times out, counted from when its devices are ready.
        fresh: start new processes for every placement; None for all devices but CPUs.
        steps: rule of a measurement; None for the median of as many steps as make it precise.

    Attributes:
        problem: the problem of its placements.
        log: all measurements, in order.

    Raises:
        SituateError: a graph of another model, rules that cannot run, or missing devices.
    """

    def __init__(
        self,
        problem: Problem,
        subject: Subject,
        limit: float = MEASUREMENT_LIMIT_SECONDS,
        fresh: bool | None = None,
        steps: Steps | None = None,
    ) -> None:
        _check_problem(problem, subject)
        self._rule = steps
        self.problem, self._subject, self._limit = problem, subject, limit
        self._devices = real_devices(problem.cluster)
        check_devices(self._devices, problem.cluster)
        cpus = all(device.torch == "cpu" for device in self._devices)
        # A CUDA context keeps cached memory, and is unusable after a failed kernel.
        self._fresh = not cpus if fresh is None else fresh
        self._workers = HardwareWorkers(limit, _defining_modules(problem.graph.name))
        self._simulator = Simulator(problem)
        self._order = np.array(problem.graph.order, np.int32)
        self._state = [
            (tensor, tensor.detach().clone()) for tensor in _model_tensors(subject.model)
        ]
        self.log: list[Measurement] = []

    at_once = 1
    """A measurement takes seconds, so each is recorded before the next begins."""

    finalists = FINALISTS
    """Several, since two measurements of a placement differ."""

    @property
    def name(self) -> str:
        """The processor, PyTorch, the devices and the repetition of steps."""
        import torch

        threads = torch.get_num_threads()
        devices = ", ".join(f"{d.name} = {d.torch} x {d.threads or threads}" for d in self._devices)
        return (
            f"hardware {cpu_name()}; torch {torch.__version__}; {devices}; "
            f"{repetition_text(self._rule)}, limit {self._limit!r}"
        )

    def by(self, steps: Steps) -> RealMachine:
        """The same machine, with the same processes and log, that measures by these steps. Fewer
        steps run if all would take more than half the limit."""
        # A copy of the attributes shares processes and log, and runs no checks again.
        other = RealMachine.__new__(RealMachine)
        vars(other).update(vars(self), _rule=steps)
        return other

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """See `Evaluator`; a device runs its ops in the order of the graph."""
        placement_rows = rows(placements, self.problem.n, "placements")
        with naming(self.problem, placement_rows, lambda row: f"sample {first + row}: "):
            schedules = [
                scheduled(self._simulator, row, self._order, "eager") for row in placement_rows
            ]
        measured_rows = [self.run(schedule) for schedule in schedules]
        return Measurements(
            np.array([one.seconds for one in measured_rows], np.float64),
            np.array([OUTCOMES.index(one.outcome) for one in measured_rows], np.uint8),
        )

    def run(self, schedule: Schedule) -> Measurement:
        """Measure a schedule, which may come from any method."""
        return self.run_in(schedule.placement, order_of(self.problem, schedule).tolist())

    def run_in(self, placement: Placement, order: list[int]) -> Measurement:
        """Measure a placement (n,) whose devices run their ops in this order."""
        try:
            seconds = self._times(placement, order)
        except StepFailed as failure:
            # The failure's outcome is a plain string; the one in `OUTCOMES` has the literal type.
            outcome = next(name for name in OUTCOMES if name == failure.outcome)
            measurement = Measurement(np.inf, outcome, failure=str(failure))
        except BaseException:
            # Ctrl-C within a step leaves workers that wait for one another.
            self._workers.close()
            raise
        else:
            measurement = Measurement(
                self._aggregate(seconds), "ok", standard_error(seconds), len(seconds)
            )
        if self._fresh or measurement.outcome != "ok":
            self._workers.close()
        self.log.append(measurement)
        return measurement

    def close(self) -> None:
        """End the processes; the next placement starts new ones."""
        self._workers.close()

    def __reduce__(self) -> NoReturn:
        raise SituateError(
            "workers: a RealMachine measures on devices of this process: give "
            "RealMachines(problem, model, workers) as the evaluator, without workers beside it"
        )

    def __enter__(self) -> RealMachine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _aggregate(self, seconds: list[float]) -> float:
        if self._rule is None:
            return statistics.median(seconds)
        return float(self._rule.seconds(np.array([seconds]))[0])

    def _times(self, placement: Placement, order: list[int]) -> list[float]:
        """Seconds of each timed step.

        Raises:
            StepFailed: a step did not end, or its loss is not finite.
        """
        dropped_steps, timed_steps = (
            (self._rule.dropped, self._rule.timed) if self._rule else (1, None)
        )
        with self._start_step(placement, order) as step:
            for number in range(dropped_steps):
                self._seconds(step, number + 1)
            # Half of the limit is left for the start and the dropped steps.
            until = time.perf_counter() + self._limit / 2
            seconds: list[float] = []
            while not has_enough_steps(seconds, until - time.perf_counter(), timed_steps):
                seconds.append(self._seconds(step, dropped_steps + len(seconds) + 1))
        self._workers.finish()
        return seconds

    def _start_step(self, placement: Placement, order: list[int]) -> PlacedStep:
        program, model = self._subject.program, self._subject.model
        # A rate of zero keeps parameters, but steps still write buffers such as running means.
        for tensor, value in self._state:
            tensor.detach().copy_(value)
        placed_program = place(program, placement, order, self.problem.d)
        return PlacedStep(
            placed_program, model, self._optimizer(), self._devices, start=self._workers.start
        )

    def _optimizer(self) -> torch.optim.Optimizer | None:
        """An optimiser with a learning rate of zero, so repeated steps leave the parameters
        unchanged."""
        program = self._subject.program
        if not program.training:
            return None
        optimizer = optimizers.default_optimizer(
            program.optimizer, list(self._subject.model.parameters())
        )
        for group in optimizer.param_groups:
            group["lr"] = 0.0
        return optimizer

    def _seconds(self, step: PlacedStep, number: int) -> float:
        start = time.perf_counter()
        returned = step(*arguments(self._subject.caller_inputs))
        seconds = time.perf_counter() - start
        finite_loss(returned, number)
        return seconds


def _check_problem(problem: Problem, subject: Subject) -> None:
    name, hash_ = problem.graph.name, subject.program.graph.hash
    if problem.graph.hash != hash_:
        raise SituateError(
            f"graph {name!r} is not that of the model {subject.program.graph.name!r} which would "
            "run: capture it anew"
        )
    if problem.transfers == "atomic":
        raise SituateError(
            f"rules {problem.rules.name!r}: nothing runs by them: measure with --rules situate"
        )


def _defining_modules(name: str) -> tuple[str, ...]:
    """The module of the model's function, which may define operators."""
    module, colon, _ = name.partition(":")
    return (module,) if colon and module not in zoo.names() else ()


def _model_tensors(model: torch.nn.Module) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]
