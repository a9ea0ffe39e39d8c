"""The scale of a linkage: how far breeding follows the scores, chosen by plans of BRKGA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from situate import _core
from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.regal.features import Features
from situate.solvers.evolutionary.regal.linkage import LinkageModel, Scores, with_scores
from situate.solvers.evolutionary.regal.proposals import Proposals, guided, proposals
from situate.solvers.evolutionary.regal.settings import CONSTANTS
from situate.solvers.evolutionary.regal.training.instances import value

SCALES = [(most, power) for most in (0.5, 0.7, 0.9, 1.0) for power in (1.0, 1.5, 2.0, 3.0)]
"""Pairs of `Origin.most` and `Origin.power` that validation compares."""

CONCENTRATIONS = (0.0, 2.0, 4.0, 8.0)
"""`Origin.concentration`, compared with the best pair; the pairs are compared with `USUAL`."""

USUAL = 4.0

PLAIN = 0.0, 1.0, 0.0
"""The scale that joins no ops and leaves affinities uniform."""

Scale = tuple[float, float, float]
"""`Origin.most`, `Origin.power` and `Origin.concentration`."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """A problem, and the plans of its teachers.

    Attributes:
        problem: of n ops and e edges.
        nodes, edges, source, target: see `raw_features`.
        together: (e,) the share of the teachers' plans with both ends on one device. It does not
            change with the names of the devices, so that equivalent plans teach the same.
        beside: (n,) the share of these plans with an op on the anchor's device; None if devices
            differ.
    """

    problem: Problem
    nodes: Features
    edges: Features
    source: Ints
    target: Ints
    together: Features
    beside: Features | None


@dataclass(frozen=True)
class Trial:
    """A run of BRKGA that judges a scale.

    Attributes:
        evaluations: of BRKGA.
        seed: of its draws.
    """

    evaluations: int
    seed: int


def best_scale(
    model: LinkageModel,
    lessons: Sequence[Lesson],
    trial: Trial,
    report: Callable[[str], None],
) -> Scale:
    """The scale with the best plans of BRKGA on these lessons: pairs first, then concentrations."""
    ops = model.origin.shape.ops
    pairs = [PLAIN, *((most, power, USUAL if ops else 0.0) for most, power in SCALES)]
    first = _compared(model, lessons, pairs, trial, report)
    if not ops or first == PLAIN:
        return first
    scales = [(first[0], first[1], concentration) for concentration in CONCENTRATIONS]
    return _compared(model, lessons, [PLAIN, *scales], trial, report)


def _compared(
    model: LinkageModel,
    lessons: Sequence[Lesson],
    scales: Sequence[Scale],
    trial: Trial,
    report: Callable[[str], None],
) -> Scale:
    """The best of these scales, of which the first is `PLAIN`."""
    # (lessons, scales) relative to the constant without a linkage.
    values = np.array([_values(model, lesson, scales, trial) for lesson in lessons])
    means = (values / values[:, :1]).mean(axis=0)
    for (most, power, concentration), mean in zip(scales, means, strict=True):
        report(
            f"most {most}, power {power}, concentration {concentration}: {mean:.4f} of the "
            f"constant's value"
        )
    return scales[int(means.argmin())]


def _values(
    model: LinkageModel, lesson: Lesson, scales: Sequence[Scale], trial: Trial
) -> list[float]:
    simulator = Simulator(lesson.problem)
    guide = _constant_guide(simulator)
    together, beside = model.likely(lesson.nodes, lesson.edges, lesson.source, lesson.target)
    return [
        _bred_value(
            simulator,
            guide,
            Scores((most * together**power).astype(np.float32), beside, concentration),
            trial,
        )
        for most, power, concentration in scales
    ]


def _constant_guide(simulator: Simulator) -> Proposals:
    """The proposals of the best constant, in `tuned` settings."""
    problem = simulator.problem
    constant = CONSTANTS["tuned", problem.objective]
    keys = _core.search.key_count(simulator.core)
    actions = constant.actions(problem.n)
    return proposals(problem, actions, constant.proposed, keys, constant.breeding.bias)


def _bred_value(simulator: Simulator, guide: Proposals, scores: Scores, trial: Trial) -> float:
    """The best `value` of BRKGA with these scores."""
    problem = simulator.problem
    breeding = CONSTANTS["tuned", problem.objective].breeding
    population = guided(simulator, breeding, with_scores(problem, guide, scores), trial.seed)
    population.run(trial.evaluations, inf, 1)
    return value(population)
