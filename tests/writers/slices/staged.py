"""Training steps of slices through layers, and plans that run them as pipelines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.report.slices.stages import model_parts
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode

PATHS = ("embed", *(f"layers.{i}" for i in range(4)), "head")
"""An embedding, four layers and a head."""

SPLIT = (0, 0, 0, 1, 1, 1)
"""Two stages of three parts each."""


def staged(
    slices: int = 4,
    paths: Sequence[str] = PATHS,
    shares: Sequence[int] = (),
    loss: str | None = "mean",
) -> Graph:
    """A forward op of a second for each part and slice, and two backward ops: one hands a gradient
    on, the other makes the weight's. A parameter a part, and a loss outside of all."""
    ops: list[Op] = []
    tensors: dict[str, tuple[int, list[int]]] = {}

    def add(name: str, seconds: float, *reads: str, **fields: object) -> None:
        for tensor in reads:
            tensors[tensor][1].append(len(ops))
        tensors[name] = (len(ops), [])
        ops.append(Op(name, seconds={"*": seconds}, **fields))  # type: ignore[arg-type]

    for path in paths:
        name = f"{path}.weight"
        add(name, 0.0, kind="parameter", persistent=4, group=name, module=path)
    for s in range(slices):
        add(f"slice{s}/input/0", 0.0, kind="input", phase="forward", slice=s)
        add(f"slice{s}/loss/full", 0.0, phase="backward", slice=s)
        result = f"slice{s}/input/0"
        for path in paths:
            name = f"slice{s}/{path}/mm"
            add(name, 1.0, result, f"{path}.weight", module=path, phase="forward", slice=s)
            result = name
        add(f"slice{s}/loss/mean", 0.0, result, phase="forward", slice=s)
        result = f"slice{s}/loss/mean_backward"
        add(result, 0.0, f"slice{s}/loss/mean", f"slice{s}/loss/full", phase="backward", slice=s)
        for path in reversed(paths):
            fields = {"module": path, "phase": "backward", "slice": s}
            remaining = f"slice{s}/{path}/mm"
            if path != paths[0]:
                add(f"{remaining}#2", 1.0, result, f"{path}.weight", **fields)
            add(f"{remaining}#3", 1.0, result, remaining, **fields)
            result = f"{remaining}#2"
            total = f"{path}.weight/add{s - 1}" if s > 1 else f"slice0/{path}/mm#3"
            if s:
                add(
                    f"{path}.weight/add{s}",
                    0.0,
                    total,
                    f"{remaining}#3",
                    phase="backward",
                    module=path,
                )
    for path in paths:
        total = f"{path}.weight/add{slices - 1}" if slices > 1 else f"slice0/{path}/mm#3"
        add(f"{path}.weight/sgd", 0.0, total, phase="update", group=f"{path}.weight", module=path)
    edges = tuple(Tensor(n, producer, 1, tuple(c)) for n, (producer, c) in tensors.items())
    shares = shares or (2,) * slices
    cut = Slices(tuple(shares), loss=loss)  # type: ignore[arg-type]
    return Graph("staged", tuple(ops), edges, slices=cut)


def on(graph: Graph, devices: int = 2, kind: str = "gpu") -> Problem:
    """The step on devices called `gpu0` and so on, with links that take next to nothing."""
    machines = tuple(Device(f"{kind}{i}", kind=kind) for i in range(devices))
    return Problem(graph, Cluster("c", machines, (Link("*", "*", 1e12),)))


def placement(problem: Problem, devices: Sequence[int]) -> np.ndarray:
    """Parts on these devices; the loss with the last, inputs with the first."""
    parts = model_parts(problem.graph)
    results = [
        devices[part] if part >= 0 else devices[-1 if "loss" in op.name else 0]
        for op, part in zip(problem.graph.ops, parts.of_op, strict=True)
    ]
    return np.array(results, np.int32)


def staged_plan(
    problem: Problem, devices: Sequence[int] = SPLIT, key: Callable[[Op], float] | None = None
) -> Schedule:
    """The plan of parts on these devices, in the program's order or by a key of each op."""
    order = np.array(problem.graph.program_order, np.int32)
    if key is not None:
        urgency = np.array([key(op) for op in problem.graph.ops])
        order = order[np.argsort(urgency[order], kind="stable")]
    return decode(problem, placement(problem, devices), order, "eager")


def backward_first(op: Op) -> float:
    """1F1B: of the passes that a device may run, backward ones go first."""
    return 0.0 if op.phase == "backward" else 1.0


def weights_last(op: Op) -> float:
    """Zero bubble: gradients of weights wait until there is nothing else."""
    return 2.0 if op.name.endswith("#3") else backward_first(op)
