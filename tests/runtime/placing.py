"""The network of two branches on one device, or with a branch on each of two."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from situate.runtime.hardware import RealDevice
from situate.runtime.model_state.optimizers import kind_of
from situate.runtime.programs.placed import place
from situate.runtime.programs.program import capture_program
from situate.runtime.step import PlacedStep
from tests import branches


def placed_step(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None,
    devices: int = 1,
    seed: int = 0,
    threads: int = 1,
    given: Any = None,
) -> PlacedStep:
    """A step of the model, of the branches' inputs and loss where none are given; on two devices
    the right branch is on the second."""
    inputs, loss = given or branches.build()[1:]
    kind = "sgd" if optimizer is None else kind_of(optimizer)
    program = capture_program(model, inputs, loss, training=optimizer is not None, optimizer=kind)
    graph = program.graph
    right = [op.module.startswith("right") or op.name.startswith("right") for op in graph.ops]
    placement = np.array(right, np.int32) * (devices - 1)
    cut = place(program, placement, graph.order, devices)
    machine = [RealDevice(f"cpu:{d}", "cpu", threads) for d in range(devices)]
    return PlacedStep(cut, model, optimizer, machine, seed=seed)


def sgd(parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """Momentum-free, with a step long enough to be seen."""
    return torch.optim.SGD(parameters, lr=0.1)
