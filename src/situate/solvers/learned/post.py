"""`post`, and the methods that it combines: independent softmaxes over devices.

Gao, Chen and Li, *Post: Device Placement with Cross-Entropy Minimization and Proximal Policy
Optimization*, NeurIPS 2018. Every group m of ops has a distribution f(d_m = j | u_m) over the
devices j, the softmax of its preferences u_m (Eq. 2), and is placed independently of the others
(Eq. 3). After samples n = 1, ..., L of placements d and their step times T(d):

- every K samples one of two ascents (`_ascend`), with the advantage A = b - T(d) over a baseline b:
  `proximal` (Eq. 11), which maximises the mean of f(d | u') / f(d | u) A - beta KL(f(u), f(u')), or
  `plain`, one step along the mean of A times the gradient of log f(d | u);
- every N samples the minimisation of cross-entropy (`_minimise`): the distributions become the
  frequencies of devices among the fraction rho of placements that took least (Eq. 10), mixed with a
  share epsilon of the uniform distribution (line 12).

`PAPER` and `TUNED` hold each method's choice of these and their numbers. The distributions and
their gradients in closed form are in `situate.policies.softmax`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.grouping import METHODS_WITH_COUNT, Groups
from situate.policies.softmax import (
    Array,
    Softmax,
    Surrogate,
    counts,
    kl_divergence,
    softmax,
)
from situate.policies.softmax import (
    policy_gradient as gradient_of_logits,
)
from situate.solvers.learned.checkpoint import restored
from situate.solvers.learned.groups import coarser_groups, grouped
from situate.solvers.learned.initial_placements import InitialPlacements, initial_placements
from situate.solvers.learned.learner import Learning, State
from situate.solvers.learned.rewards import failure_seconds, normalised

Levels = Sequence[tuple[Groups, float]]
"""(groups, share): the groups to place until this share of all samples; shares rise."""

LEAST_SPREAD = 1e-12
"""Step times whose standard deviation is below this, in seconds, are equal."""

MOST_BETA = 1024.0
"""Largest weight of the KL penalty; its inverse is the least."""


@dataclass(frozen=True)
class SoftmaxSettings:
    """Names are those of Post, section 3 and Algorithm 1; the defaults are its section 4.

    Attributes:
        gradient: the ascent every K samples: `proximal` (Eq. 11), `plain` for one step along the
            policy gradient, or None.
        cross_entropy: True to minimise the cross-entropy every N samples (Eq. 10).
        K, N: samples between two gradient updates and between two minimisations.
        minimisations: least number of minimisations; with few samples N becomes a smaller multiple
            of K.
        steps: ascent steps of a proximal update.
        learning_rate: of every ascent step.
        elite: fraction of the N samples that is promising (rho).
        memory: minimisations for which a sample stays a candidate, its own included.
        epsilon: share of the uniform distribution, falling linearly to zero.
        beta, target: first weight of the KL penalty, and the divergence that it adapts to.
        single_first: True if the first samples are `InitialPlacements`.
        normalise: standardise the advantages over the K samples.
        grouping, groups: rule of grouping and its number of groups; `none` is a softmax for every
            op, as in the paper.
        coarser: (number of groups, share of all samples up to which it applies), both rising.
    """

    gradient: Literal["proximal", "plain"] | None = "proximal"
    cross_entropy: bool = True
    K: int = 12
    N: int = 60
    minimisations: int = 0
    steps: int = 10
    learning_rate: float = 1.0
    elite: float = 0.1
    memory: int = 1
    epsilon: float = 0.1
    beta: float = 1.0
    target: float = 0.03
    single_first: bool = False
    normalise: bool = False
    grouping: str = "none"
    groups: int | None = None
    coarser: tuple[tuple[int, float], ...] = ()

    def within(self, samples: int) -> SoftmaxSettings:
        """The settings with the N of a search of so many samples.

        An ascent remains before each minimisation.
        """
        # N is a multiple of K, and an ascent every K samples leaves the N-th to the minimisation.
        often = samples // (self.minimisations * self.K) if self.minimisations else self.N
        least = 2 if self.gradient else 1
        return replace(self, N=min(self.N, self.K * max(least, often)), minimisations=0)


PAPER = {
    "policy_gradient": SoftmaxSettings(gradient="plain", cross_entropy=False),
    "ppo": SoftmaxSettings(cross_entropy=False),
    "cross_entropy": SoftmaxSettings(gradient=None),
    "post": SoftmaxSettings(),
}
"""Settings of the paper, by method."""

_TUNED: dict[str, dict[str, Any]] = {
    "policy_gradient": {"learning_rate": 2.0, "normalise": True},
    "ppo": {"learning_rate": 0.3, "normalise": True},
    "cross_entropy": {"minimisations": 10, "memory": 4, "epsilon": 0.05},
    "post": {
        "learning_rate": 0.2,
        "normalise": True,
        "minimisations": 10,
        "memory": 4,
        "epsilon": 0.05,
    },
}

TUNED = {
    method: replace(
        PAPER[method],
        single_first=True,
        grouping="structure",
        groups=256,
        coarser=((16, 0.15), (64, 0.4)),
        **changes,
    )
    for method, changes in _TUNED.items()
}
"""Tuned settings by method, from networks that no paper measures; see docs/methods/post.md."""


class SoftmaxLearner:
    """Independent softmaxes over the devices of every group, as a `Learner`.

    Args:
        groups: the final groups.
        settings: of the updates.
        samples: number of placements in all (L).
        failure: seconds of a failed placement, and the upper limit of all others.
        seed: of the samples.
        first: initial placements if the settings ask for them; None for single devices.
        coarser: nested unions of these groups, the fewest first, each with the share of the
            samples up to which it applies.
    """

    def __init__(
        self,
        groups: Groups,
        settings: SoftmaxSettings,
        samples: int,
        failure: float,
        seed: int,
        first: InitialPlacements | None = None,
        coarser: Levels = (),
    ) -> None:
        self.settings = settings.within(samples)
        self._levels = (*coarser, (groups, 1.0))
        self._samples = samples
        self._failure = failure
        self._seed = seed
        self._n = 0
        self.groups = self._groups_now()
        self.policy = Softmax(self.groups.allowed)
        self._first = InitialPlacements(self.groups) if first is None else first
        self._beta = settings.beta
        self._sum = 0.0
        self._devices = np.empty((0, len(self.groups)), np.int32)
        self._times = np.empty(0)

    @property
    def told_costs(self) -> bool:
        """True if its groups were made with op durations, or it measures a plan first."""
        has_plan = self.settings.single_first and self._first.has_plan
        return has_plan or any(groups.told_costs for groups, _ in self._levels)

    @property
    def reads_flops(self) -> bool:
        """True if its groups were made with FLOPs of ops."""
        return any(groups.reads_flops for groups, _ in self._levels)

    @property
    def batch(self) -> int:
        """Number of samples until the next multiple of K or N."""
        periods = [self.settings.K] if self.settings.gradient else []
        periods += [self.settings.N] if self.settings.cross_entropy else []
        return min(period - self._n % period for period in periods)

    def ask(self, k: int) -> NDArray[np.int32]:
        """Placements (k, n) drawn from the policy (Algorithm 1, line 3)."""
        devices = self.policy.sample(k, np.random.default_rng([self._seed, self._n]))
        if self._n == 0 and self.settings.single_first:
            self._first.write_into(devices)
        return self.groups.expand(devices)

    def tell(self, placements: NDArray[np.int32], measurements: Measurements) -> None:
        """Update as Algorithm 1 does, lines 5 to 13."""
        times = np.minimum(measurements.times(self._failure), self._failure)
        # (k, n) ops -> (k, g) groups, as the distributions are over groups.
        devices = self.groups.devices(placements)
        self._n += len(times)
        self._sum += float(times.sum())
        if self.settings.cross_entropy:
            self._devices = np.concatenate((self._devices, devices))
            self._times = np.concatenate((self._times, times))
        if self.settings.cross_entropy and self._n % self.settings.N == 0:
            self._minimise()
        elif self.settings.gradient and self._n % self.settings.K == 0:
            self._ascend(devices, times)
        self._refine()

    def _groups_now(self) -> Groups:
        """The groups of the current level."""
        longer = (groups for groups, share in self._levels if self._n < share * self._samples)
        return next(longer, self._levels[-1][0])

    def _refine(self) -> None:
        """Switch to finer groups when it is time; each inherits the distribution of its union."""
        coarse, self.groups = self.groups, self._groups_now()
        if self.groups is not coarse:
            # (finer groups,) the coarser group that each was a part of.
            whole = coarse.of_op[self.groups.first]
            self.policy = self.policy.split(whole, self.groups.allowed)
            self._devices = self._devices.take(whole, axis=1)

    def _minimise(self) -> None:
        """Lines 10 and 12: the promising placements' frequencies, and exploration.

        A failed placement is never promising, even if few placements ran.
        """
        count = max(1, round(self.settings.elite * min(self.settings.N, len(self._times))))
        # Candidates (m,): all samples since the last minimisations, at most `memory` times N.
        best = np.argsort(self._times, kind="stable")[:count]
        best = best[self._times[best] < self._failure]
        if len(best):
            # Line 12: exploration falls linearly with the remaining samples.
            epsilon = self.settings.epsilon * max(0.0, 1 - self._n / self._samples)
            self.policy.estimate(self._devices[best], epsilon)
        old = max(0, len(self._times) - self.settings.N * (self.settings.memory - 1))
        self._devices, self._times = self._devices[old:], self._times[old:]

    def _ascend(self, devices: NDArray[np.int32], times: NDArray[np.float64]) -> None:
        """Line 6: ascent on Eq. 11, or one step along the policy gradient."""
        # (k,) b - T(d): the baseline b is the mean of all times so far.
        baseline = self._sum / self._n
        advantages = baseline - times
        if self.settings.normalise:
            advantages = normalised(-times, least=LEAST_SPREAD)
        # (d, g) advantages by device and group: samples enter the gradient through these alone.
        weighted = counts(devices, advantages / len(times), len(self.policy.allowed))
        if self.settings.gradient == "plain":
            p = self.policy.probabilities
            step = np.float32(self.settings.learning_rate)
            self.policy.logits += step * gradient_of_logits(p, weighted)
        else:
            self._proximal(weighted)

    def _proximal(self, weighted: Array) -> None:
        # Eq. 11: ratios are relative to the distribution that the samples were drawn from.
        p = old = self.policy.probabilities
        surrogate, logits = Surrogate(old, weighted, self._beta), self.policy.logits.copy()
        for _ in range(self.settings.steps):
            # u <- u + learning rate times the gradient of Eq. 11 by u, at the same K samples.
            gradient = surrogate.gradient(p)
            gradient *= np.float32(self.settings.learning_rate)
            logits += gradient
            p = softmax(logits)
        self.policy.logits = logits
        self._adapt(kl_divergence(old, p))

    def _adapt(self, divergence: float) -> None:
        """Double or halve the penalty's weight (Schulman et al., 2017, section 4)."""
        if divergence > 1.5 * self.settings.target:
            self._beta = min(2 * self._beta, MOST_BETA)
        elif divergence < self.settings.target / 1.5:
            self._beta = max(self._beta / 2, 1 / MOST_BETA)

    def state(self) -> State:
        """Preferences, the samples since the last minimisation, and four numbers."""
        return {
            "logits": self.policy.logits,
            "devices": self._devices,
            "times": self._times,
            "numbers": np.array([self._n, self._beta, self._sum]),
        }

    def restore(self, state: State) -> None:
        """Load `state`."""
        with suppress(KeyError, IndexError, TypeError):  # `restored` reports missing arrays
            # The number of samples decides the level, and so the shapes that `restored` expects.
            self._n = int(state["numbers"][0])
        self._refine()
        values = restored(state, self.state(), free=("devices", "times"))
        if len(values["devices"]) != len(values["times"]):
            raise SituateError("the checkpoint's 'devices' and 'times' are of different samples")
        self.policy.logits = values["logits"].astype(np.float32)
        self._devices = values["devices"].astype(np.int32)
        self._times = values["times"].astype(np.float64)
        self._beta, self._sum = map(float, values["numbers"][1:])


def make(
    settings: SoftmaxSettings, problem: Problem, learning: Learning, samples: int, seed: int
) -> SoftmaxLearner:
    """The learner of a problem in any settings; `learning.grouping` overrides theirs."""
    groups = grouped(problem, learning, settings.grouping, settings.groups)
    coarser = _coarser(problem, learning, settings, groups)
    first = initial_placements(problem, learning, coarser[0][0] if coarser else groups)
    failure = failure_seconds(problem)
    return SoftmaxLearner(groups, settings, samples, failure, seed, first, coarser)


def _coarser(
    problem: Problem, learning: Learning, settings: SoftmaxSettings, groups: Groups
) -> Levels:
    """The coarser levels of the settings.

    There are none if `learning` fixes the number of groups, its rule takes no number, or there is
    a start plan, which few groups could not express.
    """
    rule = learning.grouping or settings.grouping
    if learning.groups or learning.start or rule not in METHODS_WITH_COUNT:
        return ()
    levels = coarser_groups(problem, groups, rule, [count for count, _ in settings.coarser])
    return [(fewer, share) for fewer, (_, share) in zip(levels, settings.coarser, strict=True)]


def _learner(
    method: str, problem: Problem, learning: Learning, samples: int, seed: int
) -> SoftmaxLearner:
    settings = PAPER if learning.settings == "paper" else TUNED
    return make(settings[method], problem, learning, samples, seed)


policy_gradient = partial(_learner, "policy_gradient")
ppo = partial(_learner, "ppo")
cross_entropy = partial(_learner, "cross_entropy")
post = partial(_learner, "post")
