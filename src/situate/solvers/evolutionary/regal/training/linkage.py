"""Training of a linkage: a network learns from plans of `auto` which edges a good plan keeps on one
device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

import msgspec
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from situate import _core
from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.policies.arithmetic import arithmetic
from situate.policies.edge_network import Array, EdgeGraph, EdgeShape, edge_graph, edge_logits
from situate.simulation.simulator import Simulator
from situate.solvers import solve
from situate.solvers.evolutionary.regal.features import Features
from situate.solvers.evolutionary.regal.linkage import (
    LinkageModel,
    Origin,
    linkage_of,
    raw_features,
    write,
)
from situate.solvers.evolutionary.regal.proposals import Proposals, guided, proposals
from situate.solvers.evolutionary.regal.settings import CONSTANTS
from situate.solvers.evolutionary.regal.training.data_set import DataSet, Machine, read_data
from situate.solvers.evolutionary.regal.training.instances import value
from situate.solvers.evolutionary.regal.training.train import WEIGHTS, make_folder
from situate.version import VERSION

LEARNING_RATE, WEIGHT_DECAY, CLIP, BATCH = 2e-3, 1e-2, 1.0, 8
"""Of AdamW (Loshchilov and Hutter, arXiv:1711.05101), its largest norm of a gradient, and graphs
of a step."""

Batch = tuple[EdgeGraph, Tensor, Tensor]
"""Graphs side by side, the target (e,) of each edge, and its weight (e,) in the loss."""

Curve = list[tuple[int, float, float]]
"""Epochs, and the mean losses in training and on held-out graphs."""

SCALES = [(most, power) for most in (0.5, 0.7, 0.9, 1.0) for power in (1.0, 1.5, 2.0, 3.0)]
"""Pairs of `Origin.most` and `Origin.power` that validation compares."""

PLAIN = 0.0, 1.0
"""The pair that joins no ops."""


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
    teacher_evaluations: int = 4000
    evaluations: int = 5000
    largest: int = 1200
    seed: int = 0
    command: str = ""


@dataclass(frozen=True, eq=False)
class Lesson:
    """A problem, and the plans of its teachers.

    Attributes:
        problem: of n ops and e edges.
        nodes, edges, source, target: see `raw_features`.
        together: (e,) the share of the teachers' plans with both ends on one device. It does not
            change with the names of the devices, so that equivalent plans teach the same.
    """

    problem: Problem
    nodes: Features
    edges: Features
    source: Ints
    target: Ints
    together: Features


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
    most, power = _best_scale(LinkageModel(arrays, origin), held_out, options, report)
    write(
        options.out / WEIGHTS,
        arrays,
        msgspec.structs.replace(origin, most=most, power=power, curve=curve),
    )
    return options.out / WEIGHTS


def _origin(options: Options, data: DataSet, lesson: Lesson) -> Origin:
    return Origin(
        objective=options.machine.objective,
        shape=EdgeShape((lesson.nodes.shape[1], lesson.edges.shape[1])),
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
    return [_lesson(options.machine.problem(graph), options) for graph in graphs]


def _lesson(problem: Problem, options: Options) -> Lesson:
    features = raw_features(problem)
    return Lesson(problem, *features, shares_together(problem, *features[2:], options))


def shares_together(problem: Problem, source: Ints, target: Ints, options: Options) -> Features:
    """(e,) the share of the teachers' plans that put both ends of an edge on one device."""
    count = np.zeros(len(source), np.float32)
    for teacher in range(options.teachers):
        seed, evaluations = options.seed + teacher, options.teacher_evaluations
        # Without the clock and on one thread, teachers are the same on every machine.
        plan = solve(problem, "auto", evaluations=evaluations, seed=seed, threads=1)
        count += plan.placement[source] == plan.placement[target]
    return count / np.float32(options.teachers)


class TorchOperations:
    """See `situate.policies.edge_network.Operations`."""

    def positive(self, x: Array) -> Array:
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
    ascent = torch.optim.AdamW(parameters.values(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(ascent, options.epochs)
    unseen = [_batch([lesson], *scaling) for lesson in held_out]
    best, curve, draw = parameters, Curve(), np.random.default_rng(options.seed)
    for epoch in range(1, options.epochs + 1):
        # Divided and rounded up, so that no batch is larger than `BATCH`.
        order = np.array_split(draw.permutation(len(lessons)), -(-len(lessons) // BATCH))
        batches = (_batch([lessons[i] for i in part], *scaling) for part in order)
        loss = float(np.mean([_step(parameters, ascent, batch) for batch in batches]))
        schedule.step()
        curve.append((epoch, loss, _mean_loss(parameters, unseen)))
        report(f"{epoch} epochs: loss {loss:.4f}, on held-out graphs {curve[-1][2]:.4f}")
        if curve[-1][2] <= min(point[2] for point in curve):
            best = {name: value.detach().clone() for name, value in parameters.items()}
    arrays = {name: np.array(value.detach().numpy()) for name, value in best.items()}
    return arrays | dict(zip(("mean", "scale"), scaling, strict=True)), curve


def _step(parameters: Mapping[str, Tensor], ascent: torch.optim.Optimizer, batch: Batch) -> float:
    """One step of training; the loss before it."""
    loss = _loss(parameters, batch)
    ascent.zero_grad()
    torch.autograd.backward([loss])
    torch.nn.utils.clip_grad_norm_(parameters.values(), CLIP)
    ascent.step()
    return float(loss.detach())


def _loss(parameters: Mapping[str, Tensor], batch: Batch) -> Tensor:
    graph, together, weight = batch
    logits = edge_logits(parameters, graph, TorchOperations())
    return binary_cross_entropy_with_logits(logits, together, weight, reduction="sum")


@torch.no_grad()
def _mean_loss(parameters: Mapping[str, Tensor], batches: Sequence[Batch]) -> float:
    return float(np.mean([float(_loss(parameters, batch)) for batch in batches]))


def _batch(lessons: Sequence[Lesson], mean: Features, scale: Features) -> Batch:
    """Graphs side by side, their targets (e,), and the weight of each edge; all graphs weigh the
    same."""
    begins = np.cumsum([0, *(len(lesson.nodes) for lesson in lessons)])
    graph = edge_graph(
        (np.concatenate([lesson.nodes for lesson in lessons]) - mean) / scale,
        np.concatenate([lesson.edges for lesson in lessons]),
        np.concatenate([lesson.source + at for lesson, at in zip(lessons, begins, strict=False)]),
        np.concatenate([lesson.target + at for lesson, at in zip(lessons, begins, strict=False)]),
    )
    weights = [
        np.full(len(lesson.source), 1 / (len(lesson.source) * len(lessons)), np.float32)
        for lesson in lessons
    ]
    tensors = EdgeGraph(*(torch.from_numpy(getattr(graph, name)) for name in graph.__slots__))
    together = np.concatenate([lesson.together for lesson in lessons])
    return tensors, torch.from_numpy(together), torch.from_numpy(np.concatenate(weights))


def _best_scale(
    model: LinkageModel,
    lessons: Sequence[Lesson],
    options: Options,
    report: Callable[[str], None],
) -> tuple[float, float]:
    """The pair of `SCALES` or `PLAIN` with the best plans of BRKGA on these lessons."""
    scales = [PLAIN, *SCALES]
    # (lessons, scales) relative to the constant without a linkage.
    values = np.array([_values(model, lesson, scales, options) for lesson in lessons])
    means = (values / values[:, :1]).mean(axis=0)
    for (most, power), mean in zip(scales, means, strict=True):
        report(f"most {most}, power {power}: {mean:.4f} of the constant's value")
    return scales[int(means.argmin())]


def _values(
    model: LinkageModel, lesson: Lesson, scales: Sequence[tuple[float, float]], options: Options
) -> list[float]:
    simulator = Simulator(lesson.problem)
    guide, likely = (
        _constant_guide(simulator),
        model.likely(lesson.nodes, lesson.edges, lesson.source, lesson.target),
    )
    return [
        _bred_value(simulator, guide, (most * likely**power).astype(np.float32), options)
        for most, power in scales
    ]


def _constant_guide(simulator: Simulator) -> Proposals:
    """The proposals of the best constant, in `tuned` settings."""
    problem = simulator.problem
    constant = CONSTANTS["tuned", problem.objective]
    keys = _core.search.key_count(simulator.core)
    actions = constant.actions(problem.n)
    return proposals(problem, actions, constant.proposed, keys, constant.breeding.bias)


def _bred_value(
    simulator: Simulator, guide: Proposals, together: Features, options: Options
) -> float:
    """The best `value` of BRKGA with this linkage."""
    problem = simulator.problem
    linked = replace(guide, linkage=linkage_of(problem, together))
    breeding = CONSTANTS["tuned", problem.objective].breeding
    population = guided(simulator, breeding, linked, options.seed)
    population.run(options.evaluations, inf, 1)
    return value(population)
