"""Tools for tests of placed steps: placements, placed steps, and PyTorch's unplaced ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph
from situate.runtime.hardware import RealDevice
from situate.runtime.programs.placed import PlacedProgram, place
from situate.runtime.programs.program import Program, capture_program
from situate.runtime.programs.seeds import kept_generator, seeded_draws
from situate.runtime.step import PlacedStep, StartDevices
from tests.runtime.models import MODELS

STEPS = 3
DEVICES = [RealDevice(f"cpu:{i}", "cpu", 1) for i in range(3)]
TWO = Cluster(
    "two",
    tuple(
        Device(f"cpu:{i}", kind="cpu", flops={"float32": 1e10}, bandwidth=1e10, threads=1)
        for i in range(2)
    ),
    (Link("*", "*", 1e9, 1e-5),),
)

MakeOptimizer = Callable[[Iterable[Any]], torch.optim.Optimizer]


@functools.cache
def program(name: str, optimizer: str = "sgd") -> Program:
    """The training step of one of `MODELS`."""
    model, inputs, loss = MODELS[name]()
    return capture_program(model, inputs, loss, optimizer=optimizer, name=name)


def scattered(graph: Graph, devices: int, seed: int) -> NDArray[np.int32]:
    """A random placement that uses all devices and splits no group."""
    random = np.random.default_rng(seed)
    placement = np.append(np.arange(devices), random.integers(devices, size=len(graph.ops)))
    placement = random.permutation(placement[: len(graph.ops)])
    first: dict[str, int] = {}
    for op, results in enumerate(graph.ops):
        if results.group is not None:
            placement[op] = placement[first.setdefault(results.group, op)]
    return placement.astype(np.int32)


def shuffled(graph: Graph, seed: int) -> list[int]:
    """A random order in which each op comes after those that it waits for."""
    random = np.random.default_rng(seed)
    waits = np.zeros(len(graph.ops), np.int64)
    after: dict[int, list[int]] = {}
    for before, op in graph.edges():
        waits[op] += 1
        after.setdefault(before, []).append(op)
    ready, order = np.flatnonzero(waits == 0).tolist(), []
    while ready:
        order.append(ready.pop(int(random.integers(len(ready)))))
        for op in after.get(order[-1], ()):
            waits[op] -= 1
            if not waits[op]:
                ready.append(op)
    return order


def cut(results: Program, devices: int, seed: int = 0) -> PlacedProgram:
    """A program on so many devices, at random."""
    graph = results.graph
    return place(results, scattered(graph, devices, seed), shuffled(graph, seed), devices)


def step_of(
    results: Program,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    devices: int,
    start: StartDevices | None = None,
    *,
    seed: int = 0,
    keep: bool = True,
) -> PlacedStep:
    """A placed step, at random; of several devices if `start` says how they are started."""
    cut_program = cut(results, devices, seed)
    return PlacedStep(cut_program, model, optimizer, DEVICES[:devices], start=start, keep=keep)


def train(
    model: nn.Module,
    inputs: tuple[Tensor, ...],
    loss: Callable[..., Tensor],
    optimizer: torch.optim.Optimizer,
    step: int,
) -> Tensor:
    """Training step number `step` as PyTorch runs it, with a placed step's draws."""
    with kept_generator(), seeded_draws(0, step):
        results = loss(model, *inputs)
        optimizer.zero_grad()
        results.backward()
        optimizer.step()
    return results.detach()


def state(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all parameters and buffers."""
    named_tensors = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach().clone() for name, tensor in named_tensors}


def optimizer_snapshot(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """A copy of an optimiser's state of every parameter."""
    return {
        f"{name} {what}": value.detach().clone()
        for name, parameter in model.named_parameters()
        for what, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    """Equal to the last bit."""
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
