"""Uniform pipelines that nothing pins, and passes as papers draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from situate.bench.families.pipelines import pipeline
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.solvers.slice_pipelines.passes import Pass


def uniform(
    devices: int, slices: int, *, chunks: int = 1, memory: int | None = None, split: bool = False
) -> Problem:
    """A step of as many equal layers as chunks on all devices, any of which may run any op.

    Args:
        memory: activations of a layer that fit a device.
        split: gradients of weights are ops of their own.
    """
    graph = pipeline(devices * chunks, slices, split=split).graph
    free = tuple(structs.replace(op, device=None) for op in graph.ops)
    equal = Cluster.identical(devices)
    held = tuple(structs.replace(device, memory=memory) for device in equal.devices)
    return Problem(replace(graph, ops=free), replace(equal, devices=held))


def drawn(passes: Sequence[Pass]) -> str:
    """Kinds and slices, such as `F0 F1 B0 B1`."""
    return " ".join(f"{kind}{part}" for kind, part, _ in passes)
