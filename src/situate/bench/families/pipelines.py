"""Uniform pipelines: micro-batches through pinned stages, with as much memory as schedules need.

Each stage takes one unit of time for the forward pass of a micro-batch, one for the gradients of
its activations and one for those of its weights, in one op of two units or in two ops (P. Qi et
al., Zero Bubble Pipeline Parallelism, ICLR 2024). A stage holds the activations of a micro-batch,
one byte, from its forward pass to its last backward op; transfers take no time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from msgspec import structs

from situate.bench.instances import Instance, ReferenceValue
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.slices import Slices

STAGES = (4, 8, 16)
BATCHES = (2, 4)
"""Micro-batches, as a multiple of the stages."""

MEMORY = (1, 2)
"""Activations that a device holds, as a multiple of those of 1F1B's first stage."""


def instances() -> list[Instance]:
    """With either kind of backward pass."""
    return [_instance(*settings) for settings in product((True, False), STAGES, BATCHES, MEMORY)]


def _instance(split: bool, stages: int, multiple: int, memory: int) -> Instance:
    batches = multiple * stages
    backward = "split backward" if split else "whole backward"
    reference = zero_bubble(stages, batches) if split else one_f_one_b(stages, batches)
    return Instance(
        "pipelines",
        f"{stages} x {batches}, {backward}, memory {memory}",
        lambda: pipeline(stages, batches, memory * stages, split=split),
        reference,
    )


def zero_bubble(stages: int, batches: int) -> ReferenceValue:
    """The last stage begins when a micro-batch has passed the others, and then never waits, with as
    many micro-batches as stages or more."""
    # A micro-batch has three passes of one unit in a stage: F, B and W.
    best = 3.0 * batches + stages - 1
    return ReferenceValue(
        best, "ZB-H1 of Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024", best
    )


def one_f_one_b(stages: int, batches: int) -> ReferenceValue:
    """The last micro-batch goes back through all stages after the last stage's work."""
    best = 3.0 * (batches + stages - 1)
    return ReferenceValue(best, "1F1B of Narayanan et al., SC 2021", best)


def pipeline(
    stages: int,
    batches: int,
    memory: int | None = None,
    seconds: Callable[[str, int], float] = lambda kind, stage: 1.0,
    split: bool = True,
) -> Problem:
    """A step of so many micro-batches. `F2.5` is the forward pass of stage 2 and micro-batch 5,
    `B2.5` the gradients of its activations, `W2.5` those of its weights; all pinned to device d2.

    Args:
        memory: activations that fit a device; None for any number.
        seconds: of an op of a kind, F, B or W, in a stage.
        split: W are ops of their own; else B takes their time, too.
    """
    equal = Cluster.identical(stages)
    devices = tuple(structs.replace(device, memory=memory) for device in equal.devices)
    cluster = replace(equal, name=f"{stages} stages", devices=devices)
    return Problem(_graph(stages, batches, seconds, split), cluster)


def _graph(stages: int, batches: int, seconds: Callable[[str, int], float], split: bool) -> Graph:
    def duration(kind: str, stage: int) -> float:
        whole = kind == "B" and not split
        return seconds(kind, stage) + (seconds("W", stage) if whole else 0.0)

    slices = Slices((1,) * batches) if batches > 1 else None
    ops = tuple(
        Op(
            f"{kind}{stage}.{batch}",
            seconds={"*": duration(kind, stage)},
            device=f"d{stage}",
            phase="forward" if kind == "F" else "backward",
            slice=batch if slices else None,
        )
        for batch, stage in product(range(batches), range(stages))
        for kind in ("FBW" if split else "FB")
    )
    place = {op.name: j for j, op in enumerate(ops)}
    all_tensors = [t for b, s in product(range(batches), range(stages)) for t in _tensors(s, b)]
    tensors = [(name, size, [op for op in to if op in place]) for name, size, to in all_tensors]
    return Graph(
        f"pipeline of {stages} stages and {batches} micro-batches",
        ops,
        tuple(
            Tensor(f"{name}:{i}", place[name], size, tuple(place[op] for op in to))
            for i, (name, size, to) in enumerate(tensors)
            if to
        ),
        unit="",
        slices=slices,
    )


def _tensors(stage: int, batch: int) -> list[tuple[str, int, list[str]]]:
    """Producer, bytes and consumers of the tensors that a stage makes of a micro-batch."""
    forward, backward = f"F{stage}.{batch}", f"B{stage}.{batch}"
    weights = f"W{stage}.{batch}"
    return [
        (forward, 0, [f"F{stage + 1}.{batch}"]),
        (forward, 1, [backward, weights]),
        (backward, 0, [f"B{stage - 1}.{batch}", weights]),
    ]
