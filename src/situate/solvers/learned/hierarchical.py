"""`hierarchical`: REINFORCE of the Hierarchical Planner's two networks at once.

A. Mirhoseini, A. Goldie et al., *A Hierarchical Model for Device Placement*, ICLR 2018. A grouper
with parameters theta_g draws m groupings g_i of the units, a placer with theta_d draws k placements
d_ij of each. The reward is R = -sqrt(seconds), the advantage A = R - b, with the moving average b.
One step of Adam follows the poster's two estimators of the gradient of J = E[R]:

    by theta_g:  1/m sum_i grad log p(g_i; theta_g) 1/k sum_j A_ij
    by theta_d:  1/k sum_j 1/m sum_i grad log p(d_ij | g_i; theta_d) A_ij

Both are gradients of `Hierarchy.objective`. docs/methods/hierarchical.md lists the choices that the
source leaves open; the networks are in `situate.policies.hierarchical`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.grouping import METHODS_WITH_COUNT, Groups, group
from situate.grouping.groups import Weights
from situate.policies.arithmetic import arithmetic
from situate.policies.gradient_ascent import Ascent
from situate.policies.grouper import Grouper
from situate.policies.hierarchical import Hierarchy, HierarchySample, Membership
from situate.policies.planner_features import SampledGroupFeatures, op_features, unit_features
from situate.policies.released_features import ReleasedGroupFeatures, released_unit_features
from situate.policies.released_planner import (
    ReleasedGrouper,
    ReleasedHierarchy,
    ReleasedPlacer,
)
from situate.policies.seq2seq import LogitScale, Placer
from situate.policies.shapes import Score
from situate.solvers.learned.checkpoint import restored
from situate.solvers.learned.learner import Learning, State
from situate.solvers.learned.rewards import failure_seconds, normalised
from situate.solvers.learned.sequence_learner import generator


@dataclass(frozen=True)
class HierarchicalSettings:
    """The defaults are those of the paper's text and, where it is silent, situate's; see
    docs/methods/hierarchical.md.

    Attributes:
        network: the networks of the `text`, or those of the `release`.
        groups: number of groups.
        groups_per_device: upper limit of `groups` for each device; None for none.
        grouping: the rule whose groups the grouper begins with; None for random groups.
        trust: initial logit of a unit's group in `grouping`.
        grouper_hidden: width of the grouper's hidden layer.
        relu: True if that layer is rectified.
        hidden, width, score, aligned: of the placer, see `Placer`.
        tanh_constant, temperature: C and T of the placer's logits C tanh(l / T), or l / T where C
            is None.
        groupings, placements: groupings per update (m), and placements per grouping (k).
        learning_rate: of Adam.
        decay, decay_every, decay_from: factor on the learning rate, the updates between two
            decays, and the first update with decay.
        clip: largest norm of a gradient.
        noise, noise_until: noise of the logits when drawing, relative to their root mean square,
            and the last update that has it.
        baseline: decay of the rewards' moving average.
        pessimistic: True if that average begins at the reward of a failure; else it begins at the
            mean of the first update.
        late: updates after which failed placements are ignored; None for never.
        frozen: updates after which the devices of the groups stay as they were; None for never.
        redraw: True if the gradient is that of placements drawn anew, from embeddings of zeros,
            with the rewards of the measured ones.
        normalise: take advantages relative to the update's own mean, and divide them by their root
            mean square. If all rewards are equal, they are relative to the moving average.
        entropy: weight of the entropy of the placer's distributions, in nats a group; 0 for none.
    """

    network: Literal["text", "release"] = "text"
    groups: int = 256
    groups_per_device: int | None = None
    grouping: str | None = None
    trust: float = 0.0
    grouper_hidden: int = 64
    relu: bool = True
    hidden: int = 512
    width: int = 32
    score: Score = "additive"
    aligned: bool = False
    tanh_constant: float | None = 5.0
    temperature: float = 10.0
    groupings: int = 1
    placements: int = 4
    learning_rate: float = 0.1
    decay: float = 1.0
    decay_every: int = 50
    decay_from: int = 400
    clip: float | None = 1.0
    noise: float = 0.0
    noise_until: int = 750
    baseline: float = 0.9
    pessimistic: bool = False
    late: int | None = None
    frozen: int | None = None
    redraw: bool = False
    normalise: bool = False
    entropy: float = 0.0

    def rate(self, update: int) -> float:
        """The learning rate in update number `update`."""
        times = max(0, (update - self.decay_from) // self.decay_every)
        return float(self.learning_rate * self.decay**times)

    def exploration(self, update: int) -> float:
        """Noise in update number `update`."""
        return self.noise if update <= self.noise_until else 0.0


PAPER = HierarchicalSettings()
RELEASE = HierarchicalSettings(
    network="release",
    groups_per_device=20,
    relu=False,
    width=512,
    tanh_constant=1.0,
    temperature=1.0,
    placements=1,
    decay=0.95,
    noise=0.5,
    pessimistic=True,
    late=1000,
    frozen=500,
    redraw=True,
)
TUNED = HierarchicalSettings(
    groups=96,
    grouping="structure",
    trust=12.0,
    hidden=64,
    score="general",
    aligned=True,
    tanh_constant=None,
    temperature=1.0,
    groupings=4,
    placements=3,
    learning_rate=1e-2,
    decay=0.95,
    pessimistic=True,
    normalise=True,
)
PRESETS = {"paper": PAPER, "release": RELEASE, "tuned": TUNED}
"""Settings by name, see `Learning.settings`."""


class HierarchicalLearner:
    """A `Hierarchy` that ascends the expectation of -sqrt(seconds).

    PyTorch computes on one thread here, so that placements do not depend on the number of threads.

    Args:
        hierarchy: the policy.
        settings: of the updates, and the rule whose groups the grouper begins with.
        failure: seconds of a failed placement, and the upper limit of all others.
        seed: of the samples.
        weights: of ops in the rule of the grouper's first groups; None without any.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        settings: HierarchicalSettings,
        failure: float,
        seed: int,
        weights: Weights | None = None,
    ) -> None:
        self.hierarchy = hierarchy
        self._settings = settings
        self._failure = failure
        self._seed = seed
        self._weights = weights
        self._ascent = Ascent(hierarchy, "adam", settings.learning_rate, settings.clip)
        # NaN before the first rewards, unless it begins at the reward of a failure.
        self._baseline = -float(np.sqrt(failure)) if settings.pessimistic else math.nan
        self._samples = 0
        self._updates = 0
        self._last_draw: HierarchySample | None = None
        self._devices = torch.zeros((self.batch, hierarchy.groups), dtype=torch.int64)

    @property
    def ascent(self) -> Ascent:
        """The ascent of both networks."""
        return self._ascent

    @property
    def told_costs(self) -> bool:
        """True if the grouper begins with groups that were made with op durations."""
        return self._weights == "seconds"

    @property
    def reads_flops(self) -> bool:
        """True if the grouper begins with groups that were made with FLOPs of ops."""
        return self._weights == "work"

    @property
    def batch(self) -> int:
        """m k, the placements of an update."""
        return self._settings.groupings * self._settings.placements

    def ask(self, k: int) -> NDArray[np.int32]:
        """Placements (k, n) of groups drawn by the grouper on devices drawn by the placer."""
        noise = self._settings.exploration(self._updates)
        with arithmetic():
            draws = generator(self._seed, 1, self._samples)
            draw = self.hierarchy.draw(k, self._settings.placements, draws, noise)
            if self._settings.frozen is not None:
                draw = self._with_frozen_devices(draw, self._settings.frozen)
            self._last_draw = draw
            return self.hierarchy.expand(draw)

    def _with_frozen_devices(self, draw: HierarchySample, frozen: int) -> HierarchySample:
        """The draw with the last devices from update `frozen` on."""
        if self._updates < frozen:
            self._devices[: len(draw.devices)] = draw.devices
        return replace(draw, devices=self._devices[: len(draw.devices)].clone())

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """One step of both networks along the poster's estimators."""
        assert self._last_draw is not None, "nothing was asked for"
        late = self._settings.late is not None and self._updates >= self._settings.late
        mask = measurements.ok | (not late)
        if mask.any():
            seconds = np.minimum(measurements.times(self._failure), self._failure)
            # (k,) zero outside the mask; the others are scaled so that the mean over all samples
            # is the mean over the mask.
            advantages = np.zeros(len(seconds))
            advantages[mask] = self._advantages(seconds[mask]) / mask.mean()
            self._ascend(self._last_draw, advantages)
        # The draw holds activations of the placer, which are of the old parameters.
        self._last_draw = None
        self._updates += 1
        self._samples += len(placements)

    def _ascend(self, draw: HierarchySample, advantages: Floats) -> None:
        self._ascent.learning_rate = self._settings.rate(self._updates)
        with arithmetic():
            weights = torch.from_numpy(advantages.astype(np.float32))
            if self._settings.redraw:
                assert isinstance(self.hierarchy, ReleasedHierarchy)
                noise = self._settings.exploration(self._updates)
                draws = generator(self._seed, 2, self._samples)
                draw = self.hierarchy.redraw(len(weights), draws, noise)
            self._ascent.step(self.hierarchy.objective(draw, weights, self._settings.entropy))

    def _advantages(self, seconds: Floats) -> Floats:
        """(k,) advantages: rewards less the baseline."""
        rewards = -np.sqrt(seconds)
        mean, decay = float(rewards.mean()), self._settings.baseline
        # The average before these rewards.
        baseline = mean if math.isnan(self._baseline) else self._baseline
        self._baseline = decay * baseline + (1 - decay) * mean
        if self._settings.normalise:
            return normalised(rewards, baseline=baseline)
        return np.asarray(rewards - baseline)

    def state(self) -> State:
        """Parameters, Adam's moments, the baseline, the numbers of samples and updates, and the
        last devices if they are to be frozen."""
        counts = np.array([self._samples, self._updates], np.int64)
        state = {**self._ascent.state(), "baseline": np.array([self._baseline]), "done": counts}
        frozen = self._settings.frozen is not None
        return {**state, "devices": self._devices.numpy().copy()} if frozen else state

    def restore(self, state: State) -> None:
        """Load `state`."""
        values = restored(state, self.state())
        self._ascent.restore(values)
        self._baseline = float(np.array(values["baseline"])[0])
        self._samples, self._updates = map(int, np.array(values["done"]))
        if "devices" in values:
            self._devices = torch.from_numpy(np.array(values["devices"], np.int64))
        self._last_draw = None


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> HierarchicalLearner:
    """The learner in one of its settings; the grouper begins with `learning.grouping`."""
    return make(problem, with_grouping(PRESETS[learning.settings], learning), seed)


def with_grouping(settings: HierarchicalSettings, learning: Learning) -> HierarchicalSettings:
    """The settings with the grouping that `learning` asks for."""
    groups = settings.groups if learning.groups is None else learning.groups
    limit = settings.groups_per_device if learning.groups is None else None
    settings = replace(settings, groups_per_device=limit)
    if learning.grouping is None:
        return replace(settings, groups=groups)
    if settings.network == "release":
        raise SituateError(
            "grouping: the released grouper begins at random: leave out grouping, or give "
            "settings paper or tuned"
        )
    trust = settings.trust or TUNED.trust
    return replace(settings, groups=groups, grouping=learning.grouping, trust=trust)


def make(problem: Problem, settings: HierarchicalSettings, seed: int) -> HierarchicalLearner:
    """The learner in any settings."""
    start = _start(problem, settings)
    with arithmetic():
        hierarchy = _make_hierarchy(problem, settings, start, generator(seed, 0))
    weights = start.weights if start else None
    return HierarchicalLearner(hierarchy, settings, failure_seconds(problem), seed, weights)


def _make_hierarchy(
    problem: Problem, settings: HierarchicalSettings, start: Groups | None, draws: torch.Generator
) -> Hierarchy:
    """The initial policy; `start` are the grouper's first groups, if any."""
    if settings.network == "release":
        return _released_hierarchy(problem, settings, draws)
    # A rule may make more groups than the settings ask for; each needs a column.
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
        scale=LogitScale(settings.temperature, settings.tanh_constant),
        uniform=start is not None,
    )
    return Hierarchy(grouper, placer, membership, embeddings)


def _released_hierarchy(
    problem: Problem, settings: HierarchicalSettings, draws: torch.Generator
) -> ReleasedHierarchy:
    per_device = settings.groups_per_device
    limit = settings.groups if per_device is None else per_device * problem.d
    count = min(settings.groups, limit)
    membership, ops = Membership(problem, count), op_features(problem)
    embeddings = ReleasedGroupFeatures(problem, ops, count)
    features = torch.from_numpy(released_unit_features(problem, ops)[membership.free])
    placer = ReleasedPlacer(
        embeddings.width,
        problem.d,
        settings.hidden,
        generator=draws,
        scale=LogitScale(settings.temperature, settings.tanh_constant),
    )
    grouper = ReleasedGrouper(features, count, settings.grouper_hidden, draws)
    return ReleasedHierarchy(grouper, placer, membership, embeddings)


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
