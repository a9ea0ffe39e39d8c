"""Pipelines of pinned stages, through which the micro-batches of a training step go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from msgspec import structs

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem

KINDS = "FBW"
"""Forward pass, gradients of activations, and gradients of weights."""


def pipeline(
    stages: int,
    batches: int,
    memory: int | None = None,
    seconds: Callable[[str, int], float] = lambda kind, stage: 1.0,
) -> Problem:
    """A stage a device and three ops a stage and micro-batch; what stages exchange takes neither
    time nor memory.

    Args:
        memory: activations that fit a device, one a micro-batch from the beginning of its forward
            pass to the end of its last backward op; None for any number.
        seconds: of an op of a kind in a stage.
    """
    ops, place = [], {}
    for batch in range(batches):
        for stage in range(stages):
            for kind in KINDS:
                place[kind, stage, batch] = len(ops)
                took = {"*": seconds(kind, stage)}
                ops.append(Op(f"{kind}{stage}.{batch}", seconds=took, device=f"d{stage}"))
    tensors = [
        tensor
        for batch in range(batches)
        for stage in range(stages)
        for tensor in _tensors(place, stage, batch)
    ]
    equal = Cluster.identical(stages)
    devices = tuple(structs.replace(device, memory=memory) for device in equal.devices)
    graph = Graph(f"pipeline-{stages}x{batches}", tuple(ops), tuple(tensors))
    return Problem(graph, replace(equal, devices=devices))


def _tensors(place: dict[tuple[str, int, int], int], stage: int, batch: int) -> list[Tensor]:
    """The tensors that the ops of a stage make of a micro-batch."""
    forward, back, weights = (place[kind, stage, batch] for kind in KINDS)
    following, before = place.get(("F", stage + 1, batch)), place.get(("B", stage - 1, batch))
    name = f"{stage}.{batch}"
    made = [
        Tensor(f"activations{name}", forward, 1, (back, weights)),
        Tensor(f"gradients{name}", back, 0, (weights,)),
    ]
    if following is not None:
        made.append(Tensor(f"forward{name}", forward, 0, (following,)))
    if before is not None:
        made.append(Tensor(f"backward{name}", back, 0, (before,)))
    return made
