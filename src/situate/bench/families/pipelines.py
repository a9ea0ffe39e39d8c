"""Uniform pipelines: micro-batches through pinned stages, with as much memory as schedules need.

Each stage takes one unit of time for the forward pass of a micro-batch, one for the gradients of
its activations and one for those of its weights, in one op of two units or in two ops (P. Qi et
al., Zero Bubble Pipeline Parallelism, ICLR 2024). A stage holds the activations of a micro-batch,
one byte, from its forward pass to its last backward op; transfers take no time.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from msgspec import structs

from situate.bench.instances import Instance, Known
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem

STAGES = (4, 8, 16)
BATCHES = (2, 4)
"""Micro-batches, as a multiple of the stages."""

MEMORY = (1, 2)
"""Activations that a device holds, as a multiple of those of 1F1B's first stage."""


def instances() -> list[Instance]:
    """With either kind of backward pass."""
    return [_instance(*each) for each in product((True, False), STAGES, BATCHES, MEMORY)]


def _instance(split: bool, stages: int, multiple: int, memory: int) -> Instance:
    batches = multiple * stages
    backward = "split backward" if split else "whole backward"
    name = f"{stages} x {batches}, {backward}, memory {memory}"
    known = zero_bubble(stages, batches) if split else one_f_one_b(stages, batches)
    return Instance(
        "pipelines", name, lambda: _problem(stages, batches, split, memory * stages), known
    )


def zero_bubble(stages: int, batches: int) -> Known:
    """The last stage begins when a micro-batch has passed the others, and then never waits."""
    best = 3.0 * batches + stages - 1
    return Known(best, "ZB-H1 of Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024", best)


def one_f_one_b(stages: int, batches: int) -> Known:
    """The last micro-batch goes back through all stages after the last stage's work."""
    best = 3.0 * (batches + stages - 1)
    return Known(best, "1F1B of Narayanan et al., PipeDream, SOSP 2019", best)


def _problem(stages: int, batches: int, split: bool, memory: int) -> Problem:
    equal = Cluster.identical(stages)
    devices = tuple(structs.replace(device, memory=memory) for device in equal.devices)
    cluster = replace(equal, name=f"{stages} stages of {memory} bytes", devices=devices)
    return Problem(pipeline(stages, batches, split), cluster)


def pipeline(stages: int, batches: int, split: bool) -> Graph:
    """The graph of a step: forward ops F, gradients of activations B, and of weights W if `split`;
    `B2.5` is that of stage 2 and micro-batch 5, pinned to device d2."""
    kinds = {"F": 1.0, "B": 1.0, "W": 1.0} if split else {"F": 1.0, "B": 2.0}
    ops = tuple(
        Op(f"{kind}{stage}.{batch}", seconds={"*": seconds}, device=f"d{stage}")
        for batch, stage in product(range(batches), range(stages))
        for kind, seconds in kinds.items()
    )
    place = {op.name: j for j, op in enumerate(ops)}
    made = [t for b, s in product(range(batches), range(stages)) for t in _tensors(s, b)]
    tensors = [(name, size, [op for op in to if op in place]) for name, size, to in made]
    return Graph(
        f"pipeline of {stages} stages and {batches} micro-batches",
        ops,
        tuple(
            Tensor(f"{name}:{i}", place[name], size, tuple(place[op] for op in to))
            for i, (name, size, to) in enumerate(tensors)
            if name in place and to
        ),
        unit="",
    )


def _tensors(stage: int, batch: int) -> list[tuple[str, int, list[str]]]:
    """Producer, bytes and consumers of what a stage makes of a micro-batch."""
    forward, backward = f"F{stage}.{batch}", f"B{stage}.{batch}"
    weights = f"W{stage}.{batch}"
    return [
        (forward, 0, [f"F{stage + 1}.{batch}"]),
        (forward, 1, [backward, weights]),
        (backward, 0, [f"B{stage - 1}.{batch}", weights]),
    ]
