"""Cases of the runtime's benchmarks: networks captured once, steps of them unplaced and placed,
measured costs, and calls that are timed in turn."""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from msgspec import structs
from numpy.typing import NDArray

import situate
from benchmarks.runtime import runtime_models
from situate.data.cluster import Device
from situate.data.costs import Costs
from situate.data.cuts import Cuts, parse_cuts
from situate.data.slices import Slices
from situate.host.discover import discover
from situate.profiling.profile import cluster_from_costs, profile
from situate.runtime.hardware import real_devices
from situate.runtime.model_state import optimizers
from situate.runtime.programs.placed import PlacedProgram, place
from situate.runtime.programs.program import Program, capture_program
from situate.runtime.step import PlacedStep, StartDevices
from situate.runtime.unplaced import UnplacedStep
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import order_of

OPTIMIZERS = {
    "cifar_cnn": "sgd",
    "resnet50": "momentum",
    "inception_v3": "momentum",
    "rnnlm": "sgd",
    "nmt2": "adam",
    "gpt2": "adamw",
    "gpt2_batch4": "adamw",
    "moe": "adamw",
    "two_branches": "sgd",
    "small_rnn": "sgd",
    "chain": "sgd",
    "diamonds": "sgd",
    "perceptron": "sgd",
}
"""The networks of `runtime_models`, and how they are trained."""

LEAST_ROUNDS, MOST_ROUNDS, WARM_UP = 5, 100, 2
"""Rounds in which calls are timed in turn: fewest, most, and those before that do not count."""


@dataclass(frozen=True)
class Case:
    """A network, built once from seed 0; every step works on a copy of it.

    Attributes:
        sizes: arguments of its function; by default its own.
        slices: how many the batch is cut into; 1 for a whole one.
        cuts: of its ops, such as `heads=2`; none for whole ops.
    """

    name: str
    sizes: tuple[int, ...] = ()
    training: bool = True
    slices: int = 1
    cuts: tuple[str, ...] = ()

    @property
    def model_name(self) -> str:
        """The name by which commands know the network, at its own sizes."""
        return (
            f"benchmarks.runtime.runtime_models:{self.name}{'' if self.training else ':inference'}"
        )

    @property
    def kind(self) -> str:
        """The kind of its optimiser."""
        return OPTIMIZERS[self.name]

    @property
    def cut(self) -> Slices | None:
        """Equal slices of the batch; every loss here is a mean over samples."""
        return None if self.slices == 1 else Slices((1,) * self.slices, loss="mean")

    @cached_property
    def built(self) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...], Callable[..., Any]]:
        """Model, inputs and loss."""
        torch.manual_seed(0)
        model, inputs, loss = getattr(runtime_models, self.name)(*self.sizes)
        return model.train(self.training), inputs, loss

    @cached_property
    def program(self) -> Program:
        """The captured step."""
        model, _, loss = self.built
        return capture_program(
            model,
            self.inputs,
            loss if self.training else None,
            training=self.training,
            optimizer=self.kind,
            name=self.model_name,
            slices=self.cut,
            cuts=self.op_cuts,
        )

    @property
    def op_cuts(self) -> Cuts | None:
        """The cuts of its ops."""
        return parse_cuts(self.cuts) if self.cuts else None

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        """The inputs of a step; the last one of a training step is the loss's alone."""
        return self.built[1] if self.training else self.built[1][:-1]

    def copied(self) -> torch.nn.Module:
        """A model of its own."""
        return copy.deepcopy(self.built[0])

    def unplaced(self) -> Callable[[], torch.Tensor]:
        """The step as people write it: PyTorch's autograd and optimiser, or the model alone."""
        return self.step_of(self.copied())

    def step_of(self, model: torch.nn.Module) -> Callable[[], torch.Tensor]:
        """The same of a model that is already there."""
        if not self.training:
            return torch.inference_mode()(lambda: model(*self.inputs))
        if self.slices > 1:
            return self._accumulating(model)
        optimizer, (_, inputs, loss) = self._optimizer(model), self.built

        def step() -> torch.Tensor:
            optimizer.zero_grad()
            value: torch.Tensor = loss(model, *inputs)
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            return value.detach()

        return step

    def _accumulating(self, model: torch.nn.Module) -> Callable[[], torch.Tensor]:
        """The step that adds up the gradients of slices, with a placed step's draws."""
        _, inputs, loss = self.built
        cut = self.program.graph.slices
        step = UnplacedStep(model, inputs, loss, self._optimizer(model), slices=cut)
        return lambda: step()[0]

    def _optimizer(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        return optimizers.default_optimizer(self.kind, list(model.parameters()))

    def placed(
        self,
        schedule: Schedule,
        cluster: situate.Cluster,
        *,
        keep: bool = True,
        start: StartDevices | None = None,
    ) -> PlacedStep:
        """The step as a schedule says, on a copy of the model."""
        return self.ready(self.program_of(schedule, cluster), cluster, keep=keep, start=start)

    def program_of(self, schedule: Schedule, cluster: situate.Cluster) -> PlacedProgram:
        """The program of each device."""
        order = order_of(self.problem(cluster), schedule).tolist()
        return place(self.program, schedule.placement, order, len(cluster.devices))

    def ready(
        self,
        placed: PlacedProgram,
        cluster: situate.Cluster,
        *,
        keep: bool = True,
        start: StartDevices | None = None,
    ) -> PlacedStep:
        """The step of a program that is cut already."""
        model = self.copied()
        optimizer = self._optimizer(model) if self.training else None
        devices = real_devices(cluster)
        return PlacedStep(placed, model, optimizer, devices, keep=keep, start=start)

    def problem(self, cluster: situate.Cluster, costs: Costs | None = None) -> situate.Problem:
        """Its step on a cluster."""
        return situate.Problem(self.program.graph, cluster, costs=costs)


def one_cpu(threads: int) -> situate.Cluster:
    """One device of so many threads; its rates decide nothing."""
    device = Device("cpu:0", kind="cpu", flops={"float32": 1e11}, bandwidth=1e10, threads=threads)
    return situate.Cluster(f"one-{threads}", (device,))


def cpus(count: int) -> situate.Cluster:
    """So many CPU devices of one thread each, of this machine as it is found to be."""
    result = discover(count)
    hosts = tuple(
        structs.replace(device, threads=1) for device in result.devices if device.kind == "cpu"
    )
    links = tuple(link for link in result.links if link.source.startswith("cpu"))
    return dataclasses.replace(result, devices=hosts, links=links)


def profiled(case: Case, cluster: situate.Cluster) -> tuple[situate.Cluster, Costs]:
    """The cluster with measured links, and the seconds of each op of a network there. Ops are
    measured one by one, before and apart from any step of a placement."""
    kind = case.kind if case.training else None
    costs = profile(case.model_name, cluster, kind, case.cut, case.op_cuts).costs
    return cluster_from_costs(cluster, costs), costs


@dataclass(frozen=True)
class Turns:
    """Calls that were timed in turn.

    Attributes:
        wall: (rounds, calls) seconds.
        cpu: (rounds, calls) seconds of all threads of this process, which other work of the machine
            does not change.
    """

    wall: NDArray[np.float64]
    cpu: NDArray[np.float64]

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.wall)

    def seconds(self, call: int) -> float:
        """Median wall time."""
        return float(np.median(self.wall[:, call]))

    def ratios(self, above: int, below: int) -> NDArray[np.float64]:
        """(rounds,) of the wall times of two calls of one round."""
        return self.wall[:, above] / self.wall[:, below]

    def ratio(self, above: int, below: int) -> float:
        """The median of `ratios`."""
        return float(np.median(self.ratios(above, below)))

    def cpu_ratio(self, above: int, below: int) -> float:
        """The median of the rounds' ratios of CPU time."""
        return float(np.median(self.cpu[:, above] / self.cpu[:, below]))


def in_turn(calls: Sequence[Callable[[], object]], seconds: float) -> Turns:
    """In every round each call once, every other round in reverse, for so many seconds and at least
    `LEAST_ROUNDS`; before that `WARM_UP` rounds that do not count."""
    for call in [*calls] * WARM_UP:
        call()
    rounds: list[list[tuple[float, float]]] = []
    end = time.perf_counter() + seconds
    while len(rounds) < LEAST_ROUNDS or (time.perf_counter() < end and len(rounds) < MOST_ROUNDS):
        order = range(len(calls))[:: -1 if len(rounds) % 2 else 1]
        durations = {k: _timed(calls[k]) for k in order}
        rounds.append([durations[k] for k in range(len(calls))])
    both = np.array(rounds)
    return Turns(both[:, :, 0], both[:, :, 1])


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    begin, busy = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - begin, time.process_time() - busy
