"""Small networks of layers, and plans for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from tests.report.handmade import schedule

PATHS = ("model.embed_tokens", *(f"model.layers.{i}" for i in range(6)), "model.norm", "lm_head")
"""An embedding, six layers and two modules behind them."""


def network(
    paths: Sequence[str] = PATHS,
    kinds: Sequence[str] = ("gpu", "gpu", "gpu"),
    persistent: Sequence[int] = (),
    memory: int | None = None,
) -> Problem:
    """A chain of ops, one a path, that hold 10 bytes each; devices are called `gpu0` and so on.

    `#` and the text behind it tell ops of one path apart.
    """
    sizes = persistent or [10] * len(paths)
    ops = tuple(
        Op(path, seconds={"*": 1.0}, persistent=size, module=path.partition("#")[0])
        for path, size in zip(paths, sizes, strict=True)
    )
    tensors = tuple(Tensor(f"t{i}", i, 8, (i + 1,)) for i in range(len(ops) - 1))
    devices = tuple(Device(f"{kind}{i}", kind=kind, memory=memory) for i, kind in enumerate(kinds))
    return Problem(Graph("net", ops, tensors), Cluster("c", devices, (Link("*", "*", 8.0),)))


def layered_plan(devices: Sequence[int], **options: Any) -> tuple[Problem, Schedule]:
    """The network of `PATHS` and the plan that puts its ops on these devices."""
    problem = network(**options)
    return problem, schedule(problem, devices)
