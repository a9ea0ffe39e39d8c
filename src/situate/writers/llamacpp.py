"""llama.cpp: which layers go to which GPU, and which tensors stay elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from situate.atomic import write_bytes
from situate.problem import Problem
from situate.schedule import Schedule
from situate.writers.launcher import script
from situate.writers.layers import layers
from situate.writers.places import places
from situate.writers.stages import runs, visible, warn_of_splits

CPU = -1
"""In place of the number of a GPU."""

EXPERTS = "ffn_.*_exps"
"""The tensors of a layer that hold its experts, all of them in each."""


def write(problem: Problem, schedule: Schedule, path: str | Path) -> None:
    """Write a script for `sh FILE llama-server -m MODEL`. A layer with experts goes where the rest
    of it is.

    Raises:
        PlanError: the graph names no list of layers, or a GPU's layers are not in one piece.
        SituateError: `path` cannot be written.
    """
    network, numbers = layers(problem, schedule), places(problem.cluster)
    gpus = [device for device, number in enumerate(numbers) if isinstance(number, int)]
    parts = [
        replace(part, device=network.trunks.get(layer, part.device))
        for layer, part in enumerate(network.parts)
    ]
    pieces = runs(problem, [part for part in parts if part.device in gpus])
    warn_of_splits(network)
    used = [device for device, _ in pieces]
    others = {*network.experts.values(), *(part.device for part in network.after[-1:])}
    used += sorted(others.intersection(gpus).difference(used))
    number = {device: i for i, device in enumerate(used)}
    homes = [number.get(part.device, CPU) for part in parts]
    experts = {layer: number.get(device, CPU) for layer, device in network.experts.items()}
    output = [number.get(part.device, CPU) for part in network.after[-1:]]
    split = shares(homes, len(used), *output)
    arguments = [*split, *overrides(homes, experts), *ending(homes, output)]
    names = [problem.cluster.names[device] for device in used] or ["CPU"]
    environment = visible(problem.cluster, used)
    write_bytes(path, script(problem, names, environment, arguments))


def shares(homes: Sequence[int], count: int, output: int = CPU) -> list[str]:
    """Options that put every layer on its GPU, of `count` GPUs, and where no layer is on one, the
    output on its own.

    llama.cpp keeps the first layers on the CPU and shares out the others, and the output behind
    them as one more, in proportion to `-ts`: in whole numbers that add up, exactly so many. A
    layer on the CPU behind others counts as its neighbour's here, and `overrides` takes it back.
    """
    begin = _first_on_gpu(homes)
    here = homes[begin] if begin < len(homes) else output
    if here == CPU:
        return ["-ngl", "0"]
    split = [0] * count
    for home in homes[begin:]:
        here = here if home == CPU else home
        split[here] += 1
    split[here] += 1
    ratio = ",".join(map(str, split))
    return ["-ngl", str(len(homes) + 1 - begin), "-sm", "layer", "-ts", ratio]


def overrides(homes: Sequence[int], experts: Mapping[int, int]) -> list[str]:
    """Options for experts that are not where their layer is, then for layers on the CPU behind a
    GPU's: of several patterns that match a tensor the first holds."""
    begin = _first_on_gpu(homes)
    exiled: dict[tuple[int, str], list[int]] = defaultdict(list)
    for layer, home in enumerate(homes):
        if experts.get(layer, home) != home:
            exiled[experts[layer], EXPERTS].append(layer)
    for layer, home in enumerate(homes):
        if home == CPU and layer > begin:
            exiled[CPU, ""].append(layer)
    options = []
    for (home, tensors), numbers in exiled.items():
        options += ["-ot", rf"blk\.({'|'.join(map(str, numbers))})\.{tensors}={_buffer(home)}"]
    return options


def ending(homes: Sequence[int], output: Sequence[int]) -> list[str]:
    """Options for an output, one or none, that is not where the last layer on a GPU is."""
    last = next((home for home in reversed(homes) if home != CPU), CPU)
    away = [_buffer(home) for home in output if last not in (home, CPU)]
    return [word for buffer in away for word in ("-ot", f"^output={buffer}")]


def _buffer(home: int) -> str:
    return "CPU" if home == CPU else f"CUDA{home}"


def _first_on_gpu(homes: Sequence[int]) -> int:
    return next((layer for layer, home in enumerate(homes) if home != CPU), len(homes))
