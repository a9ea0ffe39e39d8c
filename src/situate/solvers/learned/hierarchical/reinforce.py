"""REINFORCE of the Hierarchical Planner's two networks at once, as a `Learner`.

A grouper with parameters theta_g draws m groupings g_i of the units, a placer with theta_d draws k
placements d_ij of each. The reward is R = -sqrt(seconds), the advantage A = R - b, with the moving
average b. One step of Adam follows the poster's two estimators of the gradient of J = E[R]:

    by theta_g:  1/m sum_i grad log p(g_i; theta_g) 1/k sum_j A_ij
    by theta_d:  1/k sum_j 1/m sum_i grad log p(d_ij | g_i; theta_d) A_ij

Both are gradients of `Hierarchy.objective`. docs/methods/hierarchical.md lists the choices that the
source leaves open; `settings.py` has the numbers, `situate.policies.hierarchical` the policy.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.grouping import METHODS_WITH_COUNT, TOLD_COSTS, Groups, group
from situate.policies.arithmetic import arithmetic
from situate.policies.gradient_ascent import Ascent
from situate.policies.grouper import Grouper
from situate.policies.hierarchical import Hierarchy, HierarchySample, Membership
from situate.policies.planner_features import SampledGroupFeatures, op_features, unit_features
from situate.policies.seq2seq import Placer
from situate.solvers.learned.checkpoint import restored
from situate.solvers.learned.hierarchical.settings import HierarchicalSettings
from situate.solvers.learned.learner import State
from situate.solvers.learned.penalty import failure_seconds
from situate.solvers.learned.rewards import normalised
from situate.solvers.learned.sequence_learner import generator


class HierarchicalLearner:
    """A `Hierarchy` that ascends the expectation of -sqrt(seconds).

    PyTorch computes on one thread here, so that placements do not depend on the number of threads.

    Args:
        hierarchy: the policy.
        settings: of the updates, and the rule whose groups the grouper begins with.
        failure: seconds of a failed placement, and the upper limit of all others.
        seed: of the samples.
    """

    def __init__(
        self, hierarchy: Hierarchy, settings: HierarchicalSettings, failure: float, seed: int
    ) -> None:
        self.hierarchy = hierarchy
        self._settings = settings
        self._failure = failure
        self._seed = seed
        self._ascent = Ascent(hierarchy, "adam", settings.learning_rate, settings.clip)
        # NaN before the first rewards, unless it begins at the reward of a failure.
        self._baseline = -float(np.sqrt(failure)) if settings.pessimistic else math.nan
        self._samples = 0
        self._updates = 0
        self._last_draw: HierarchySample | None = None

    @property
    def ascent(self) -> Ascent:
        """The ascent of both networks."""
        return self._ascent

    @property
    def told_costs(self) -> bool:
        """True if the grouper begins with groups that were made with op durations."""
        return self._settings.grouping in TOLD_COSTS

    @property
    def batch(self) -> int:
        """m k, the placements of an update."""
        return self._settings.groupings * self._settings.placements

    def ask(self, k: int) -> NDArray[np.int32]:
        """Placements (k, n) of groups drawn by the grouper on devices drawn by the placer."""
        noise = self._settings.exploration(self._updates)
        with arithmetic():
            draws = generator(self._seed, 1, self._samples)
            self._last_draw = self.hierarchy.draw(k, self._settings.placements, draws, noise)
            return self.hierarchy.expand(self._last_draw)

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """One step of both networks along the poster's estimators."""
        assert self._last_draw is not None, "nothing was asked for"
        late = self._settings.late is not None and self._updates >= self._settings.late
        mask = measurements.ok | (not late)
        if mask.any():
            seconds = np.minimum(measurements.times(self._failure), self._failure)
            # (k,) zero outside the mask; the others are scaled so that the mean over all samples
            # is the mean over the mask.
            advantage = np.zeros(len(seconds))
            advantage[mask] = self._advantage(seconds[mask]) / mask.mean()
            self._ascend(self._last_draw, advantage)
        self._last_draw = None
        self._updates += 1
        self._samples += len(placements)

    def _ascend(self, draw: HierarchySample, advantage: Floats) -> None:
        self._ascent.learning_rate = self._settings.rate(self._updates)
        with arithmetic():
            weights = torch.from_numpy(advantage.astype(np.float32))
            self._ascent.step(self.hierarchy.objective(draw, weights, self._settings.entropy))

    def _advantage(self, seconds: Floats) -> Floats:
        """(k,) advantages: rewards less the baseline."""
        rewards = -np.sqrt(seconds)
        mean, decay = float(rewards.mean()), self._settings.baseline
        before = mean if math.isnan(self._baseline) else self._baseline
        self._baseline = decay * before + (1 - decay) * mean
        return (
            normalised(rewards, baseline=before) if self._settings.normalise else rewards - before
        )

    def state(self) -> State:
        """Parameters, Adam's moments, the baseline, and the numbers of samples and updates."""
        counts = np.array([self._samples, self._updates], np.int64)
        return {**self._ascent.state(), "baseline": np.array([self._baseline]), "done": counts}

    def restore(self, state: State) -> None:
        """Load `state`."""
        values = restored(state, self.state())
        self._ascent.restore(values)
        self._baseline = float(np.array(values["baseline"])[0])
        self._samples, self._updates = map(int, np.array(values["done"]))
        self._last_draw = None


def hierarchical_learner(
    problem: Problem, settings: HierarchicalSettings, seed: int
) -> HierarchicalLearner:
    """The learner of a problem."""
    with arithmetic():
        hierarchy = _make_hierarchy(problem, settings, generator(seed, 0))
    return HierarchicalLearner(hierarchy, settings, failure_seconds(problem), seed)


def _make_hierarchy(
    problem: Problem, settings: HierarchicalSettings, draws: torch.Generator
) -> Hierarchy:
    """The initial policy."""
    start = _start(problem, settings)
    count = max(settings.groups, len(start) if start else 0)
    membership, ops = Membership(problem, count), op_features(problem)
    embeddings = SampledGroupFeatures(problem, ops, count)
    grouper = Grouper(
        torch.from_numpy(unit_features(problem, ops)[membership.free]),
        count,
        settings.grouper_hidden,
        draws,
        relu=settings.relu,
        start=_label(problem, start, membership) if start else None,
        trust=settings.trust,
    )
    placer = Placer(
        embeddings.width,
        problem.d,
        settings.hidden,
        generator=draws,
        score=settings.score,
        width=settings.width,
        aligned=settings.aligned,
        temperature=settings.temperature,
        tanh_constant=settings.tanh_constant,
        uniform=start is not None,
    )
    return Hierarchy(grouper, placer, membership, embeddings)


def _start(problem: Problem, settings: HierarchicalSettings) -> Groups | None:
    """The groups that the grouper begins with; None for random ones."""
    if settings.grouping is None:
        return None
    count = settings.groups if settings.grouping in METHODS_WITH_COUNT else None
    return group(problem, settings.grouping, count)


def _label(problem: Problem, start: Groups, membership: Membership) -> torch.Tensor:
    """(u,) the group of every free unit."""
    of_unit = np.empty(problem.units, np.int64)
    of_unit[problem.unit] = start.of_op
    return torch.from_numpy(of_unit[membership.free])
