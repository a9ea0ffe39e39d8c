"""llama.cpp: the GPU of each layer, and the tensors that stay elsewhere."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from situate.data.problem import Problem
from situate.files.atomic import write_bytes
from situate.schedule.schedule import Schedule
from situate.writers.exported import (
    device_names,
    differences,
    exported,
    placement_by_module,
    script,
)
from situate.writers.layers import Layers, layer_of, layers
from situate.writers.stages import visible, warn_of_splits

CPU = -1
"""In place of the number of a GPU."""

EXPERTS = "ffn_.*_exps"
"""The tensors of a layer that hold its experts, all of them in each."""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write a script for `sh FILE llama-server -m MODEL`.

    A layer with experts goes to the device of its other parts. Warns if the script differs from the
    plan, with its predicted step and memory.

    Raises:
        PlanError: the graph names no list of layers.
        SituateError: `path` cannot be written.
    """
    network, numbers = layers(problem, schedule), device_names(problem.cluster)
    parts = [
        replace(part, device=network.trunks.get(layer, part.device))
        for layer, part in enumerate(network.parts)
    ]
    warn_of_splits(network)
    others = [*network.experts.values(), *(part.device for part in network.after[-1:])]
    gpus = [device for device, number in enumerate(numbers) if isinstance(number, int)]
    device_order = in_order([part.device for part in parts], others, gpus)
    number = {device: i for i, device in enumerate(device_order)}
    layer_devices = [number.get(part.device, CPU) for part in parts]
    experts = {layer: number.get(device, CPU) for layer, device in network.experts.items()}
    output = [number.get(part.device, CPU) for part in network.after[-1:]]
    base = contiguous(layer_devices, len(device_order))
    split = shares(base, len(device_order), *output)
    arguments = [*split, *overrides(layer_devices, base, experts), *ending(base, output)]
    names = [problem.cluster.names[device] for device in device_order] or ["CPU"]
    environment = visible(problem.cluster, device_order)
    write_bytes(path, script(problem, names, environment, arguments))
    for line in differences(
        problem, schedule, _script_schedule(problem, schedule, network), "script"
    ):
        warnings.warn(line, stacklevel=2)


def _script_schedule(problem: Problem, schedule: Schedule, network: Layers) -> Schedule | None:
    """The schedule of the script; None if an op cannot run on its device. The input embedding is on
    the first CPU, if there is one."""
    cpu = next((d for d, place in enumerate(device_names(problem.cluster)) if place == "cpu"), None)
    devices = {
        part.path: network.trunks.get(layer, part.device)
        for layer, part in enumerate(network.parts)
    }
    devices |= {part.path: part.device for part in network.after}
    devices |= {part.path: part.device if cpu is None else cpu for part in network.before}
    placement = placement_by_module(problem, schedule, devices)
    for j, op in enumerate(problem.graph.ops):
        layer = layer_of(op, network.path)
        if layer in network.experts and "experts" in op.module.replace("/", ".").split("."):
            placement[j] = network.experts[layer]
    return exported(problem, schedule, placement)


def in_order(layer_devices: Sequence[int], others: Sequence[int], gpus: Sequence[int]) -> list[int]:
    """The GPUs in use, in order: by their first layers, or by the middle of their layers if fewer
    are then elsewhere, see `contiguous`; then the GPUs of `others` without layers."""
    layers_of: dict[int, list[int]] = defaultdict(list)
    for layer, device in enumerate(layer_devices):
        if device in gpus:
            layers_of[device].append(layer)
    by_middle = sorted(
        layers_of, key=lambda device: sum(layers_of[device]) / len(layers_of[device])
    )
    best_order = min([*layers_of], by_middle, key=lambda order: _elsewhere(layer_devices, order))
    return best_order + sorted({*others}.intersection(gpus).difference(best_order))


def _elsewhere(layer_devices: Sequence[int], order: Sequence[int]) -> int:
    """Layers that are not in the run of their GPU."""
    number = {device: i for i, device in enumerate(order)}
    numbered = [number.get(device, CPU) for device in layer_devices]
    base = contiguous(numbered, len(order))
    return sum(device not in (there, CPU) for device, there in zip(numbered, base, strict=True))


def contiguous(layer_devices: Sequence[int], count: int) -> list[int]:
    """The devices of the layers if each of `count` GPUs has one run of layers, in the GPUs' order.

    As few layers as possible change their device. Leading layers on the CPU stay there.
    """
    # Dynamic programming over layers: `least[g]` ends on GPU g, with its changes and devices.
    begin = _first_on_gpu(layer_devices)
    least = [(0, [CPU] * begin)] * count
    for device in layer_devices[begin:]:
        best = least[0]
        for gpu in range(count):
            # The running minimum over GPUs up to this one keeps the runs in the order of the GPUs.
            best = min(best, least[gpu], key=lambda one: one[0])
            away = device not in (CPU, gpu)
            least[gpu] = (best[0] + away, [*best[1], gpu])
    return min(least, key=lambda one: one[0], default=(0, [CPU] * begin))[1]


def shares(base: Sequence[int], count: int, output: int = CPU) -> list[str]:
    """Options that put every layer on its GPU, of `count` GPUs; without any layer on a GPU, the
    output alone. Only leading layers are on the CPU.

    llama.cpp keeps the first layers on the CPU. It divides the others, and the output as one more
    layer, in proportion to `-ts`: integers that add up to their number give exact counts.
    """
    begin = _first_on_gpu(base)
    last = base[-1] if begin < len(base) else output
    if last == CPU:
        return ["-ngl", "0"]
    split = [0] * count
    for gpu in (*base[begin:], last):
        split[gpu] += 1
    ratio = ",".join(map(str, split))
    return ["-ngl", str(len(base) + 1 - begin), "-sm", "layer", "-ts", ratio]


def overrides(
    layer_devices: Sequence[int], base: Sequence[int], experts: Mapping[int, int]
) -> list[str]:
    """Options for experts away from their layer, then for layers on other devices than in `base`.

    Of several patterns that match a tensor, the first applies.
    """
    exiled: dict[tuple[int, str], list[int]] = defaultdict(list)
    for layer, device in enumerate(layer_devices):
        if experts.get(layer, device) != device:
            exiled[experts[layer], EXPERTS].append(layer)
    for layer, (device, there) in enumerate(zip(layer_devices, base, strict=True)):
        if device != there:
            exiled[device, ""].append(layer)
    options = []
    for (device, tensors), numbers in exiled.items():
        options += ["-ot", rf"blk\.({'|'.join(map(str, numbers))})\.{tensors}={_buffer(device)}"]
    return options


def ending(base: Sequence[int], output: Sequence[int]) -> list[str]:
    """Options for an output, one or none, on another GPU than the last layer."""
    away = [_buffer(device) for device in output if base[-1] not in (device, CPU)]
    return [word for buffer in away for word in ("-ot", f"^output={buffer}")]


def _buffer(device: int) -> str:
    return "CPU" if device == CPU else f"CUDA{device}"


def _first_on_gpu(layer_devices: Sequence[int]) -> int:
    return next(
        (layer for layer, device in enumerate(layer_devices) if device != CPU), len(layer_devices)
    )
