"""A training step in which activations, and not parameters, fill the devices."""

from __future__ import annotations

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem

LAYERS = 8


def training(cluster: Cluster, kept: int = 10, **op: int) -> Problem:
    """A forward op a layer, whose output its backward op reads as well."""
    seconds = {"gpu": 1.0, "cpu": 50.0}
    forward = [Op(f"f{j}", phase="forward", seconds=seconds, **op) for j in range(LAYERS)]
    backward = [
        Op(f"b{j}", phase="backward", seconds=seconds, **op) for j in reversed(range(LAYERS))
    ]
    last = 2 * LAYERS - 1
    tensors = [Tensor(f"t{j}", j, kept, (j + 1, last - j)) for j in range(LAYERS - 1)]
    tensors.append(Tensor("t", LAYERS - 1, kept, (LAYERS,)))
    tensors += [Tensor(f"g{j}", j, 1, (j + 1,)) for j in range(LAYERS, last)]
    return Problem(Graph("training", (*forward, *backward), tuple(tensors)), cluster)


def gpus(*memory: int, cpu: bool = False) -> Cluster:
    """GPUs with so many bytes each, and a CPU."""
    devices = [Device(f"gpu{i}", memory=bytes_) for i, bytes_ in enumerate(memory)]
    devices += [Device("cpu", kind="cpu")] * cpu
    return Cluster("gpus", tuple(devices), (Link("*", "*", 1e9),))
