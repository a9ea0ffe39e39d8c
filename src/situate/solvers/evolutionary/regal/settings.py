"""Settings of REGAL: the network, its proposals and its training (A.14 to A.16); and the proposals
that need no network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from situate.data.arrays import Ints
from situate.data.problem import Objective
from situate.policies.shapes import GraphShape
from situate.solvers.evolutionary.brkga import BRKGA, BrkgaSettings
from situate.solvers.learned.learner import Settings

Name = Literal["paper", "paper_synthetic", "tuned", "gas"]


@dataclass(frozen=True)
class Proposed:
    """The numbers of quantisation levels, k in A.6; zero for no proposals.

    Attributes:
        placement: of mean and variance of every affinity.
        scheduling: of mean and variance of every priority.
        transfers: of mean and variance of the priorities of an op's output transfers; not in the
            paper.
        crossover: of the probability that a child has its elite's key.
        ranked: True if the policy chooses the distance of a priority's mean from the op's rank,
            see `distributions.ranks`; the paper's policy chooses the mean itself.
    """

    placement: int = 2
    scheduling: int = 16
    transfers: int = 0
    crossover: int = 0
    ranked: bool = False

    def choices(self, devices: int) -> list[int]:
        """The number of categories of each choice at an op.

        Means and variances come first: for every device, for the priority and for transfers. The
        crossover probabilities for each device and the priority follow.
        """
        keys = [self.placement] * (2 * devices) + [self.scheduling] * 2 + [self.transfers] * 2
        return [k for k in keys + [self.crossover] * (devices + 1) if k]


@dataclass(frozen=True)
class RegalSettings:
    """A policy and its training.

    Attributes:
        shape: of both networks.
        proposed: the kinds of proposals.
        places: True to give the policy each op's place in the graph, which the paper does not.
        feature_evaluations: of the plain BRKGA whose population gives features.
        evaluations: of a training run of BRKGA, including those for features, and of the plain
            BRKGA of the reward.
        free_features: in training, True if evaluations for features are on top of `evaluations`.
        validation_evaluations: `evaluations` in validation, including those for features; None for
            the same as in training.
        batch: graphs per step of training.
        samples: proposals per graph. A single reward is compared with the baseline; several are
            compared with one another.
        steps: of training.
        learning_rate: of Adam.
        clip: largest norm of a gradient.
        baseline_weight: of the baseline's mean squared error in the loss.
        breeding: settings of BRKGA with proposals and for features.
    """

    shape: GraphShape = field(default_factory=GraphShape)
    proposed: Proposed = field(default_factory=Proposed)
    places: bool = False
    feature_evaluations: int = 400
    evaluations: int = 1000
    free_features: bool = False
    validation_evaluations: int | None = None
    batch: int = 4
    samples: int = 1
    steps: int = 100_000
    learning_rate: float = 1e-4
    clip: float = 10.0
    baseline_weight: float = 1e-4
    breeding: BrkgaSettings = BRKGA["paper"]

    @property
    def proposed_evaluations(self) -> int:
        """Evaluations of a training run with the policy's proposals."""
        return self.evaluations - (0 if self.free_features else self.feature_evaluations)

    @property
    def in_validation(self) -> RegalSettings:
        """The settings with the evaluations of validation."""
        if self.validation_evaluations is None:
            return self
        return replace(self, evaluations=self.validation_evaluations, free_features=False)


# "1000 fitness evaluations for REGAL and BRKGA (4600 for REGAL and 5000 for BRKGA for the
# validation and test sets)" (A.14).
_PAPER = RegalSettings(free_features=True, validation_evaluations=5000)
_MEMORY = replace(
    _PAPER,
    shape=GraphShape(update="plain", aggregation="mean"),
    proposed=Proposed(scheduling=2),
)
_SYNTHETIC = replace(_PAPER, shape=GraphShape(rounds=2, update="gru", aggregation="mean"))

_GAS = replace(_PAPER, shape=GraphShape(kind="sequence"))
_TUNED = RegalSettings(
    GraphShape(rounds=4, update="gru", aggregation="mean"),
    Proposed(placement=0, transfers=16, ranked=True),
    places=True,
    feature_evaluations=100,
    evaluations=700,
    samples=8,
    steps=1_000,
    learning_rate=2e-3,
    breeding=BrkgaSettings(population=50, elites=0.3, mutants=0.1, decoder="eager"),
)
_TUNED_MEMORY = replace(
    _TUNED,
    evaluations=1000,
    steps=500,
    breeding=BRKGA["paper"],
)

SETTINGS: Mapping[tuple[Name, Objective], RegalSettings] = MappingProxyType(
    {
        ("paper", "time"): _PAPER,
        ("paper", "memory"): _MEMORY,
        ("paper_synthetic", "time"): _SYNTHETIC,
        ("tuned", "time"): _TUNED,
        ("tuned", "memory"): _TUNED_MEMORY,
        ("gas", "time"): _GAS,
        ("gas", "memory"): replace(_GAS, proposed=_MEMORY.proposed),
    }
)
"""Settings by name and objective."""


@dataclass(frozen=True)
class Constant:
    """Proposals that are the same at every op of every graph, without a network.

    Affinities keep uniform keys: of equal distributions, each device is the largest equally often.

    Attributes:
        levels: of each choice, from 1: mean and variance of priorities, then of the priorities of
            transfers if `proposed` has any.
        proposed: the numbers of levels; none of placement or crossover.
        breeding: settings of BRKGA.
    """

    levels: tuple[int, ...]
    proposed: Proposed
    breeding: BrkgaSettings

    def __str__(self) -> str:
        """The pairs of levels, such as `2 3 / 16 1`."""
        means, variances = self.levels[::2], self.levels[1::2]
        return " / ".join(f"{m} {v}" for m, v in zip(means, variances, strict=True))

    def actions(self, n: int) -> Ints:
        """(n, c) the category of each choice at n ops, as a policy would draw them."""
        # Levels count from one, categories from zero.
        return np.tile(np.array(self.levels, np.int64) - 1, (n, 1))


def _constant(settings: RegalSettings, *levels: int) -> Constant:
    return Constant(levels, replace(settings.proposed, placement=0), settings.breeding)


CONSTANTS: Mapping[tuple[Settings, Objective], Constant] = MappingProxyType(
    {
        ("paper", "time"): _constant(_PAPER, 1, 16),
        ("paper", "memory"): _constant(_MEMORY, 1, 2),
        ("tuned", "time"): _constant(_TUNED, 1, 4, 16, 1),
        ("tuned", "memory"): _constant(_TUNED_MEMORY, 2, 1, 16, 5),
    }
)
"""Constants by settings and objective.

Those for time are the best on the synthetic training set, and the one for memory in `tuned`
settings is the best on the real one (`python -m research.regal.constants`, which writes
research/results/regal_constants_*.json). The other is set by hand.
"""
