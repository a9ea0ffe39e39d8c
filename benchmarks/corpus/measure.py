"""One configuration and phase, in a process of its own: the columns of a row."""

from __future__ import annotations

import copy
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

import situate
from benchmarks.corpus.configuration import Built, Configuration
from benchmarks.corpus.remedied import captured_after_remedies
from benchmarks.lib import placements
from benchmarks.runtime.runtime_cases import cpus
from situate.data.cluster import Cluster, Device, Link
from situate.evaluators.hardware.workers import HardwareWorkers
from situate.runtime.equality import Equality, compare
from situate.runtime.hardware import real_devices
from situate.runtime.model_state import optimizers
from situate.runtime.programs.placed import place
from situate.runtime.programs.program import Program, capture_program
from situate.runtime.step import PlacedStep, StartDevices
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode, order_of
from situate.writers import accelerate

Row = dict[str, Any]
Tell = Callable[[Row], None]
"""Hands over what is known so far, so that it is there whatever becomes of the process."""

AUTOCAST = ", autocast"
"""Ends the phase of a row in mixed precision."""
OPTIMIZER = "adamw"
SHARE = 0.7
"""Memory of each of the two devices of a plan, as a share of what a step takes on one."""
EVALUATIONS = 60
STEPS = 2
TOLERANCE = 1e-4
"""Error that `situate verify` allows where a module is captured as other ops."""
SHORT_TOLERANCE = 1e-2
"""The same of numbers of 16 bits."""
LIMIT = 240.0
"""Seconds for the steps of a placement."""


@dataclass(frozen=True)
class Subject:
    """A configuration, whether it trains, and whether in mixed precision."""

    configuration: Configuration
    training: bool
    autocast: bool = False

    @property
    def phase(self) -> str:
        """As rows call it."""
        phase = "training" if self.training else "inference"
        return phase + AUTOCAST * self.autocast

    def build(self) -> Built:
        """Model, inputs and loss from seed 0. The loss is None where nothing is trained; under
        autocast, the call of the model stands for it."""
        torch.manual_seed(0)
        model, inputs, loss = self.configuration.build(self.training)
        loss = loss if self.training else None
        return model, inputs, under_autocast(loss) if self.autocast else loss

    def run(self) -> int:
        """Run its step by PyTorch alone: the number of its parameters."""
        model, inputs, loss = self.build()
        step = model if loss is None else (lambda *a, **k: loss(model, *a, **k))
        with torch.set_grad_enabled(self.training):
            value = step(**inputs) if isinstance(inputs, dict) else step(*inputs)
        if self.training:
            value.backward()
            if not torch.isfinite(value):
                raise ValueError(f"the loss is {value.item()}")
        return sum(parameter.numel() for parameter in model.parameters())

    def capture(self) -> situate.Graph:
        """Its graph, as a user asks for it."""
        return situate.capture(
            self.build,
            training=self.training,
            optimizer=OPTIMIZER,
            name=f"{self.configuration.name}:{self.phase}",
        )

    @cached_property
    def program(self) -> Program:
        """The program of every op, of a model with values."""
        model, inputs, loss = self.build()
        return capture_program(
            model, inputs, loss, training=self.training, optimizer=OPTIMIZER, name=self.phase
        )


def under_autocast(loss: Callable[..., Any] | None) -> Callable[..., Any]:
    """The call of a model, and of its loss where there is one, in bfloat16 where autocast says."""

    def step(model: torch.nn.Module, *inputs: Any, **named: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return loss(model, *inputs, **named) if loss else model(*inputs, **named)

    return step


def measure(subject: Subject, tell: Tell, seeds: int) -> None:
    """Report a configuration's results, stage by stage.

    Args:
        subject: the configuration and its phase.
        tell: is given the columns of each stage when they are known.
        seeds: random placements whose steps are compared; none leaves `verify` out.
    """
    tell({"stage": "eager"})
    try:
        tell({"parameters": subject.run()})
    except Exception as error:
        tell({"outcome": "invalid", "message": error_line(error)})
        return
    tell({"stage": "capture"})
    begin = time.perf_counter()
    try:
        graph = subject.capture()
    except situate.SituateError as error:
        tell({"outcome": "refused", **refusal(str(error))})
        tell({"stage": "remedies"})
        tell(_remedied(subject, str(error)))
        tell({"stage": "end"})
        return
    seconds = round(time.perf_counter() - begin, 2)
    tell({"outcome": "captured", "ops": len(graph.ops), "capture_seconds": seconds})
    tell({"values_of": loss_reading(graph.warnings)})
    tell({"stage": "plan"})
    tell(_planned(graph))
    if seeds:
        tell({"stage": "verify"})
        tell(_verified(subject, seeds))
    tell({"stage": "end"})


def loss_reading(warnings: Sequence[str]) -> str:
    """The inputs that a graph holds for the values of, as its warnings name them."""
    return ", ".join(name for text in warnings for name in re.findall(HOLDS, text))


def _remedied(subject: Subject, message: str) -> Row:
    """A row that says if the step is captured once the messages' remedies are applied."""

    def capture(configuration: Configuration, training: bool) -> situate.Graph:
        return replace(subject, configuration=configuration, training=training).capture()

    try:
        result, how = captured_after_remedies(
            subject.configuration, subject.training, message, capture
        )
    except Exception as error:
        return {"remedied": False, "remedy": error_line(error)}
    return {"remedied": result, "remedy": how}


def error_line(error: BaseException) -> str:
    """The error's class and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


HOLDS = r"hold for the values of input (.+?) alone"

REMEDIES = (
    "build call capture choose decide define feed fill fix give keep leave make move name pass "
    "plan put register replace return run say set take try turn use write"
)


def refusal(message: str) -> Row:
    """A row that says if a refusal names a line of code and a remedy. The exception of a
    library that is shown unchanged has neither."""
    raw = re.search(r"\b[A-Z]\w*(Error|Exception|Exit|Warning): ", message)
    remedy = re.search(rf"[:,;] ?(or |and )?({REMEDIES.replace(' ', '|')})\b", message)
    return {
        "message": message,
        "names_line": bool(re.search(r"\.py:\d+: ", message)),
        "names_remedy": bool(remedy and not raw),
    }


def two_gpus(memory: int) -> Cluster:
    """Two equal devices of so many bytes, with the rates of a desktop GPU."""
    devices = tuple(
        Device(f"gpu:{k}", flops={"float32": 3e13}, bandwidth=9e11, memory=memory) for k in (0, 1)
    )
    return Cluster("two", devices, (Link("gpu:*", "gpu:*", 1.2e10, 1e-5),))


def _planned(graph: situate.Graph) -> Row:
    """A plan for two devices that are too small each, and the map for accelerate."""
    whole = situate.Problem(graph, two_gpus(2**44))
    alone = decode(whole, np.zeros(len(graph.ops), np.int32), whole.depth_first, "eager")
    try:
        problem = situate.Problem(graph, two_gpus(int(SHARE * alone.peak[0])))
        result = situate.solve(problem, evaluations=EVALUATIONS, seed=0, threads=1)
        result.schedule.verify(problem, allow_overflow=not result.feasible)
    except situate.SituateError as error:
        return {"plan_fits": False, "plan_message": str(error)}
    return {"plan_fits": result.feasible, **_mapped(problem, result.schedule)}


def _mapped(problem: situate.Problem, schedule: Schedule) -> Row:
    """A row that says if the step that the map predicts fits the devices' memory, or is said not
    to."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            accelerate.write(problem, schedule, Path(folder) / "map.json")
        except situate.SituateError as error:
            return {"map": "none", "map_message": str(error)}
    message = "; ".join(str(warning.message) for warning in caught)
    mapped = accelerate.map_schedule(problem, accelerate.device_map(problem, schedule), schedule)
    if mapped is None:
        return {"map": "cannot run", "map_message": message}
    within = mapped.feasible(problem)
    said_not = "does not fit: " in message
    return {
        "map": "within memory" if within else "said not to be" if said_not else "beyond memory",
        "map_step_over_plan": round(mapped.makespan / schedule.makespan, 3),
        "map_message": message,
    }


def _verified(subject: Subject, seeds: int) -> Row:
    """Steps of random placements on two CPU devices against the unplaced ones."""
    cluster = replace(cpus(2), name="two")
    result: list[Equality] = []
    processes = HardwareWorkers(LIMIT)
    try:
        for seed in range(seeds):
            result.append(_compared(subject, cluster, seed, processes.start))
            processes.finish()
    except situate.SituateError as error:
        return {"verify": "refused", "verify_message": str(error)}
    finally:
        processes.close()
    exact = all(one.within(0.0) for one in result)
    rounding = SHORT_TOLERANCE if subject.autocast else TOLERANCE
    within = all(one.within(rounding if one.decomposed else 0.0) for one in result)
    worst = max(
        max(o.loss_difference, o.parameter_difference, o.optimizer_difference) for o in result
    )
    return {
        "verify": "equal" if exact else "within tolerance" if within else "differs",
        "largest_difference": worst,
        "apart": ", ".join(result[0].decomposed),
    }


def _compared(subject: Subject, cluster: Cluster, seed: int, start: StartDevices) -> Equality:
    program = subject.program
    problem = situate.Problem(program.graph, cluster)
    schedule = placements.by_unit(problem, np.random.default_rng(seed))
    order = order_of(problem, schedule).tolist()
    placed = place(program, schedule.placement, order, problem.d)
    model, inputs, loss = subject.build()

    def optimizer(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        return optimizers.default_optimizer(OPTIMIZER, parameters)

    def step(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> PlacedStep:
        return PlacedStep(
            placed, model, optimizer, real_devices(cluster), seed=seed, keep=False, start=start
        )

    return compare(
        copy.deepcopy(model),
        inputs,
        loss,
        optimizer if subject.training else None,
        step,
        steps=STEPS,
        seed=seed,
        threads=1,
        name=subject.phase,
    )
