"""Stage: one network of the zoo in one dtype, on the device alone.

The same step is captured and predicted, run by eager PyTorch, measured op by op as `situate
profile` does, and run as a placed step. In `bfloat16` the step is autocast.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import situate
from benchmarks.gpu import hardware, profiles
from benchmarks.gpu.process import Context
from benchmarks.gpu.stages import trim
from situate.data.cluster import Device
from situate.data.costs import Costs, MeasuredDevice
from situate.runtime.hardware import RealDevice
from situate.runtime.measure import measure as measure_steps
from situate.runtime.model_state.optimizers import default_optimizer
from situate.runtime.programs.placed import PlacedProgram, place
from situate.runtime.programs.program import Program, capture_program
from situate.runtime.step import PlacedStep
from situate.simulation.decoding import order_of
from situate.zoo.networks import NETWORKS
from situate.zoo.parts import ModelParts

TINY = {
    "cifar_cnn": (2,),
    "resnet50": (3, 4, 6, 3, 1),
    "resnet101": (3, 4, 23, 3, 1),
    "inception_v3": (2,),
    "rnnlm": (1,),
    "gpt2": (1, 8),
    "bert": (1, 8),
    "vit": (1,),
}
"""Sizes of a rehearsal: arguments of the zoo's functions."""

STEPS, TINY_STEPS = 11, 3
"""Steps of a measurement, the first of which does not count."""


def measure(context: Context) -> None:
    """Capture first, which needs no device; then eager steps, ops, the prediction, placed steps."""
    name, dtype = context.arguments
    torch.set_num_threads(4)
    model, inputs, loss = build_network(name, context)
    step = autocast(loss, torch.bfloat16) if dtype == "bfloat16" else loss
    kind = NETWORKS[name].optimizer
    began = time.perf_counter()
    program = capture_program(model, inputs, step, optimizer=kind, name=name)
    seconds = time.perf_counter() - began
    context.note(network=name, dtype=dtype, ops=len(program.graph.ops), capture_seconds=seconds)
    context.note(warnings=[trim(warning, 300) for warning in program.graph.warnings[:5]])
    device, real = hardware.target(context)
    context.take_device()
    context.attempt("eager", lambda: context.note(eager=eager(context, model, inputs, step, kind)))
    costs = context.attempt("ops", lambda: ops(context, program, device, real))
    placed = predict(context, program, device, costs)
    context.attempt(
        "placed", lambda: context.note(placed=run(context, placed, model, inputs, kind, real))
    )


def build_network(name: str, context: Context) -> ModelParts:
    """Model, inputs and loss, drawn from the seed."""
    torch.manual_seed(context.seed)
    network = NETWORKS[name]
    if context.tiny:
        network = dataclasses.replace(network, arguments=TINY[name])
        if name.startswith("resnet"):
            *blocks, batch = network.arguments
            resnet = importlib.import_module("situate.zoo.resnet")
            return resnet.build(*blocks, batch=batch)  # type: ignore[no-any-return]
    return network.build()


def autocast(loss: Callable[..., Tensor], dtype: torch.dtype) -> Callable[..., Tensor]:
    """The same loss, computed in another dtype where autocast allows; capture takes the CPU's list
    of ops, and so does a step of eager PyTorch on the CPU."""

    def cast(model: nn.Module, *inputs: Tensor) -> Tensor:
        with torch.autocast(inputs[0].device.type, dtype):
            value = loss(model, *inputs)
        return value.float()

    return cast


def eager(
    context: Context,
    model: nn.Module,
    inputs: tuple[Tensor, ...],
    loss: Callable[..., Tensor],
    kind: str,
) -> dict[str, Any]:
    """Seconds and memory of the step as people write it; the losses of its steps."""
    hardware.forget_peak(context)
    model = copy.deepcopy(model).to(context.device).train()
    tensors = [tensor.to(context.device) for tensor in inputs]
    optimizer = default_optimizer(kind, list(model.parameters()))
    losses: list[Tensor] = []

    def step() -> None:
        optimizer.zero_grad()
        value = loss(model, *tensors)
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(value.detach())

    count = TINY_STEPS if context.tiny else STEPS
    seconds = [hardware.wall_seconds(context, step) for _ in range(count)]
    figures = {"seconds": statistics.median(seconds[1:]), "first_seconds": seconds[0]}
    return {
        **figures,
        "fastest": min(seconds),
        "losses": [float(value) for value in losses[:3]],
        **hardware.peak_memory(context),
    }


def ops(context: Context, program: Program, device: Device, real: RealDevice) -> MeasuredDevice:
    """The device with the seconds of every op. Notes the figures by op class."""
    costs = profiles.measure_ops(context, program, device, real)
    context.note(**profiles.figures(program.graph, costs))
    return costs


def predict(
    context: Context, program: Program, device: Device, costs: MeasuredDevice | None
) -> PlacedProgram:
    """The program of the plan for the device alone, with measured costs if there are any. Notes the
    plan's seconds and bytes, and the seconds by the roofline alone."""
    cluster = hardware.alone(device)
    file = None if costs is None else Costs("gpu", "", {}, [costs])
    roofline = situate.solve(situate.Problem(program.graph, cluster), "single").schedule
    problem = situate.Problem(program.graph, cluster, costs=file)
    schedule = situate.solve(problem, "single").schedule
    context.note(
        roofline_seconds=roofline.makespan,
        predicted_seconds=schedule.makespan,
        predicted_bytes=int(schedule.peak[0]),
    )
    return place(program, schedule.placement, order_of(problem, schedule).tolist(), 1)


def run(
    context: Context,
    placed: PlacedProgram,
    model: nn.Module,
    inputs: tuple[Tensor, ...],
    kind: str,
    real: RealDevice,
) -> dict[str, Any]:
    """Seconds and memory of the placed step, on a copy of the model; the losses of its steps.
    Inputs are on the device, as those of the eager step; then in memory of the host."""
    hardware.forget_peak(context)
    model = copy.deepcopy(model).train()
    optimizer = default_optimizer(kind, list(model.parameters()))
    tensors = tuple(tensor.to(context.device) for tensor in inputs)
    with PlacedStep(placed, model, optimizer, [real], keep=False) as step:
        times = measure_steps(step, tensors, TINY_STEPS if context.tiny else STEPS)
        memory = hardware.peak_memory(context)
        from_host = measure_steps(step, inputs, TINY_STEPS)
        held_bytes = step.memory(*inputs)[0]
    return {
        "seconds": times.median,
        "first_seconds": times.first,
        "fastest": min(times.seconds),
        "seconds_from_host": from_host.median,
        "losses": times.losses[:3],
        "held_bytes": held_bytes,
        **memory,
    }
