"""Training of a linkage: a network learns from plans of `auto` which edges a good plan keeps on one
device, and which ops it puts beside the anchor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.policies.arithmetic import arithmetic
from situate.policies.edge_network import Array, EdgeGraph, EdgeShape, edge_graph, logits
from situate.solvers import solve
from situate.solvers.evolutionary.regal.features import Features
from situate.solvers.evolutionary.regal.linkage import (
    LinkageModel,
    Origin,
    raw_features,
    write,
)
from situate.solvers.evolutionary.regal.proposals import anchor
from situate.solvers.evolutionary.regal.training.data_set import DataSet, Machine, read_data
from situate.solvers.evolutionary.regal.training.scale import (
    PLAIN,
    Lesson,
    Scale,
    Trial,
    best_scale,
)
from situate.solvers.evolutionary.regal.training.train import WEIGHTS, make_folder
from situate.version import VERSION

LEARNING_RATE, WEIGHT_DECAY, CLIP, BATCH = 2e-3, 1e-2, 1.0, 8
"""Settings of AdamW (Loshchilov and Hutter, arXiv:1711.05101), the largest norm of a gradient, and
the number of graphs in a step."""

Targets = tuple[Tensor, Tensor]
"""Targets, and their weights in the loss."""

Batch = tuple[EdgeGraph, Targets, Targets | None]
"""Graphs side by side, and the targets of their edges (e,) and of their ops (n,), if any."""

Curve = list[tuple[int, float, float]]
"""Epochs, and the mean losses in training and on held-out graphs."""


@dataclass(frozen=True)
class Options:
    """Options of a training.

    Attributes:
        data: a folder with the folders of graphs `train` and `valid`.
        out: output folder, created if missing.
        machine: of the problems.
        epochs: of training.
        teachers: plans of each graph.
        teacher_evaluations: of `auto`, for each of these plans.
        evaluations: of BRKGA in the choice of the scale.
        largest: number of ops of the largest graph to learn from.
        seed: of all draws.
        command: to record in the weights.
    """

    data: Path
    out: Path
    machine: Machine
    epochs: int = 25
    teachers: int = 4
    teacher_evaluations: int = 40_000
    evaluations: int = 5000
    largest: int = 1200
    seed: int = 0
    command: str = ""


def train(options: Options, report: Callable[[str], None]) -> Path:
    """Train a network, choose its scale, write both, and return the path of their file.

    Raises:
        SituateError: no data, or a folder or file that cannot be written.
    """
    make_folder(options.out)
    hashes = set[str]()
    training, validation = (
        read_data(options.data / part, options.machine, report, hashes)
        for part in ("train", "valid")
    )
    lessons, held_out = _lessons(training, options), _lessons(validation, options)
    report(f"{len(lessons):,} graphs to learn from, {len(held_out):,} for validation")
    origin = _origin(options, training, lessons[0])
    with arithmetic():
        arrays, curve = fit(lessons, held_out, origin.shape, options, report)
    trial = Trial(options.evaluations, options.seed)
    best = best_scale(LinkageModel(arrays, origin), held_out, trial, report)
    write(options.out / WEIGHTS, arrays, _scaled(origin, best, curve))
    return options.out / WEIGHTS


def _scaled(origin: Origin, scale: Scale, curve: Curve) -> Origin:
    most, power, concentration = scale
    return msgspec.structs.replace(
        origin, most=most, power=power, concentration=concentration, curve=curve
    )


def _origin(options: Options, data: DataSet, example: Lesson) -> Origin:
    return Origin(
        objective=options.machine.objective,
        shape=EdgeShape(
            (example.nodes.shape[1], example.edges.shape[1]), ops=example.beside is not None
        ),
        most=PLAIN[0],
        power=PLAIN[1],
        data=data.hash,
        command=options.command,
        situate=VERSION,
        teachers=options.teachers,
        teacher_evaluations=options.teacher_evaluations,
        devices=len(options.machine.cluster.devices),
    )


def _lessons(data: DataSet, options: Options) -> list[Lesson]:
    graphs = [graph for graph in data.graphs if len(graph.ops) <= options.largest]
    if not graphs:
        raise SituateError(f"{options.data}: holds no graph of {options.largest} ops at most")
    return [lesson(options.machine.problem(graph), options) for graph in graphs]


def lesson(problem: Problem, options: Options) -> Lesson:
    """A problem, and the shares of the teachers' plans."""
    features, plans = raw_features(problem), placements(problem, options)
    source, target = features[2:]
    anchor_op = anchor(problem)
    return Lesson(
        problem,
        *features,
        together=_shares(plans[:, source] == plans[:, target]),
        beside=None if anchor_op is None else _shares(plans == plans[:, [anchor_op]]),
    )


def _shares(agreements: NDArray[np.bool_]) -> Features:
    """(k,) the share of rows in which each of k columns is true."""
    return np.asarray(agreements.mean(axis=0), np.float32)


def placements(problem: Problem, options: Options) -> Ints:
    """(teachers, n) the devices of ops in the teachers' plans."""
    seeds = range(options.seed, options.seed + options.teachers)
    evaluations = options.teacher_evaluations
    # Without the clock and on one thread, teachers are the same on every machine.
    plans = [
        solve(problem, "auto", evaluations=evaluations, seed=seed, threads=1) for seed in seeds
    ]
    return np.array([plan.placement for plan in plans], np.int64)


class TorchOperations:
    """See `situate.policies.edge_network.Operations`."""

    def relu(self, x: Array) -> Array:
        """See `Operations`."""
        return torch.relu(x)

    def join(self, parts: Sequence[Array]) -> Array:
        """See `Operations`."""
        return torch.cat(list(parts), dim=1)

    def sums(self, of_edges: Array, node: Array, n: int) -> Array:
        """See `Operations`."""
        return of_edges.new_zeros(n, of_edges.shape[1]).index_add(0, node, of_edges)

    def standardised(self, x: Array) -> Array:
        """See `Operations`."""
        return torch.nn.functional.layer_norm(x, x.shape[1:])


def initial_parameters(shape: EdgeShape, seed: int) -> dict[str, Tensor]:
    """Parameters as PyTorch draws those of linear layers: uniform within 1 / sqrt(inputs)."""
    generator = torch.Generator().manual_seed(seed)
    dimensions = shape.parameters()
    parameters = {}
    for name, size in dimensions.items():
        # A bias has as many inputs as its matrix.
        limit = dimensions[name.removesuffix(".bias")][0] ** -0.5
        values = torch.empty(size).uniform_(-limit, limit, generator=generator)
        parameters[name] = values.requires_grad_()
    return parameters


def fit(
    lessons: Sequence[Lesson],
    held_out: Sequence[Lesson],
    shape: EdgeShape,
    options: Options,
    report: Callable[[str], None],
) -> tuple[dict[str, Features], Curve]:
    """The parameters with the least loss on held-out lessons, and the curve."""
    nodes = np.concatenate([lesson.nodes for lesson in lessons])
    # A feature that is the same everywhere has no scale.
    scaling = nodes.mean(axis=0), np.maximum(nodes.std(axis=0), np.float32(1e-3))
    parameters = initial_parameters(shape, options.seed)
    optimizer = torch.optim.AdamW(parameters.values(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    validation = [_batch([lesson], *scaling) for lesson in held_out]
    best, curve, generator = parameters, Curve(), np.random.default_rng(options.seed)
    for epoch in range(1, options.epochs + 1):
        # Divided and rounded up, so that no batch is larger than `BATCH`.
        count = -(-len(lessons) // BATCH)
        parts = np.array_split(generator.permutation(len(lessons)), count)
        batches = (_batch([lessons[i] for i in part], *scaling) for part in parts)
        loss = float(np.mean([_step(parameters, optimizer, batch) for batch in batches]))
        schedule.step()
        curve.append((epoch, loss, _mean_loss(parameters, validation)))
        report(f"{epoch} epochs: loss {loss:.4f}, on held-out graphs {curve[-1][2]:.4f}")
        if curve[-1][2] <= min(point[2] for point in curve):
            best = {name: value.detach().clone() for name, value in parameters.items()}
    arrays = {name: np.array(value.detach().numpy()) for name, value in best.items()}
    return arrays | dict(zip(("mean", "scale"), scaling, strict=True)), curve


def _step(
    parameters: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, batch: Batch
) -> float:
    """One step of training; the loss before it."""
    loss = _loss(parameters, batch)
    optimizer.zero_grad()
    torch.autograd.backward([loss])
    torch.nn.utils.clip_grad_norm_(parameters.values(), CLIP)
    optimizer.step()
    return float(loss.detach())


def _loss(parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
    """The mean cross-entropy of edges, and that of ops if they are scored."""
    graph, of_edges, of_ops = batch
    edges, ops = logits(parameters, graph, TorchOperations())
    loss = _cross_entropy(edges, of_edges)
    return loss if ops is None or of_ops is None else loss + _cross_entropy(ops, of_ops)


def _cross_entropy(scores: Tensor, targets: Targets) -> Tensor:
    target, weight = targets
    # Weights add up to one, so the sum is a mean.
    return binary_cross_entropy_with_logits(scores, target, weight, reduction="sum")


@torch.no_grad()
def _mean_loss(parameters: Mapping[str, Tensor], batches: Sequence[Batch]) -> float:
    return float(np.mean([float(_loss(parameters, batch)) for batch in batches]))


def _batch(lessons: Sequence[Lesson], mean: Features, scale: Features) -> Batch:
    """Graphs side by side, their targets (e,), and the weight of each edge; all graphs weigh the
    same."""
    begins = np.cumsum([0, *(len(lesson.nodes) for lesson in lessons)])
    # `begins` has one entry more, the number of all ops.
    graph = edge_graph(
        (np.concatenate([lesson.nodes for lesson in lessons]) - mean) / scale,
        np.concatenate([lesson.edges for lesson in lessons]),
        np.concatenate([lesson.source + at for lesson, at in zip(lessons, begins, strict=False)]),
        np.concatenate([lesson.target + at for lesson, at in zip(lessons, begins, strict=False)]),
    )
    tensors = EdgeGraph(*(torch.from_numpy(getattr(graph, name)) for name in graph.__slots__))
    of_ops = [lesson.beside for lesson in lessons if lesson.beside is not None]
    of_edges = _targets([lesson.together for lesson in lessons])
    return tensors, of_edges, _targets(of_ops) if of_ops else None


def _targets(of_graphs: Sequence[Features]) -> Targets:
    """Targets side by side, with weights that give all graphs the same."""
    weights = [
        np.full(len(targets), 1 / (len(targets) * len(of_graphs)), np.float32)
        for targets in of_graphs
    ]
    return torch.from_numpy(np.concatenate(of_graphs)), torch.from_numpy(np.concatenate(weights))
