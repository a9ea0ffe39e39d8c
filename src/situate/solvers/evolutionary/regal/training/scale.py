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

Scale = tuple[float, float, float]
"""`Origin.most`, `Origin.power` and `Origin.concentration`."""

PLAIN: Scale = (0.0, 1.0, 0.0)
"""The scale that joins no ops and leaves affinities uniform."""

SCALES: list[Scale] = [(most, 2.0, k) for k in (0.0, 4.0) for most in (0.5, 0.7, 0.9)]
"""Few, because the best of many would be the luckiest."""

SEEDS = 3
"""Runs of BRKGA whose mean judges a scale on a graph."""


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
    """The runs of BRKGA that judge a scale.

    Attributes:
        evaluations: of each.
        seed: of the first one's draws.
    """

    evaluations: int
    seed: int


def best_scale(
    model: LinkageModel,
    lessons: Sequence[Lesson],
    trial: Trial,
    report: Callable[[str], None],
) -> Scale:
    """The scale with the best plans of BRKGA on these lessons."""
    ops = model.origin.shape.ops
    scales = [PLAIN, *(scale for scale in SCALES if ops or not scale[2])]
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
    """By scale, the mean value over seeds."""
    simulator = Simulator(lesson.problem)
    guide = _constant_guide(simulator)
    together, beside = model.estimates(lesson.nodes, lesson.edges, lesson.source, lesson.target)
    of_scales = (
        Scores((most * together**power).astype(np.float32), beside, concentration)
        for most, power, concentration in scales
    )
    return [_mean_value(simulator, guide, scores, trial) for scores in of_scales]


def _constant_guide(simulator: Simulator) -> Proposals:
    """The proposals of the best constant, in `tuned` settings."""
    problem = simulator.problem
    constant = CONSTANTS["tuned", problem.objective]
    keys = _core.search.key_count(simulator.core)
    actions = constant.actions(problem.n)
    return proposals(problem, actions, constant.proposed, keys, constant.breeding.bias)


def _mean_value(simulator: Simulator, guide: Proposals, scores: Scores, trial: Trial) -> float:
    """The mean over seeds of the best `value` of BRKGA with these scores."""
    problem = simulator.problem
    breeding = CONSTANTS["tuned", problem.objective].breeding
    guide, values = with_scores(problem, guide, scores), list[float]()
    for seed in range(trial.seed, trial.seed + SEEDS):
        population = guided(simulator, breeding, guide, seed)
        population.run(trial.evaluations, inf, 1)
        values.append(value(population))
    return float(np.mean(values))
