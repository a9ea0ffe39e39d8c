"""ColocRL's update: REINFORCE with a moving average for a baseline (Mirhoseini et al., 2017)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from situate.data.problem import Problem
from situate.policies.entropy import entropy
from situate.policies.gradient_ascent import Ascent
from situate.policies.group_policy import GroupPolicy
from situate.solvers.learned.colocrl import ColocSettings
from situate.solvers.learned.grouped import grouped
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.penalty import failure_seconds
from situate.solvers.learned.rewards import normalised
from situate.solvers.learned.sequence_learner import SequenceLearner, generator

Array = NDArray[np.float64]


class Reinforce:
    """One step against the gradient of E[r(P)] after every batch, with r the root of the seconds.

    Attributes:
        numbers: the baseline B, zero before there is one, and how many updates there were.
    """

    def __init__(self, settings: ColocSettings) -> None:
        self._settings = settings
        self.numbers: Array = np.zeros(2)

    def update(
        self,
        policy: GroupPolicy,
        ascent: Ascent,
        devices: Tensor,
        times: Array,
        ok: NDArray[np.bool_],
    ) -> None:
        """Learn from devices (k, g), their seconds (k,) and whether they ran (k,)."""
        learnt = ok | (self.numbers[1] < self._settings.late)
        if learnt.any():
            gains = torch.from_numpy(self._gains(times[learnt]).astype(np.float32))
            self._step(policy, ascent, devices[torch.from_numpy(learnt)], gains)
        self.numbers[1] += 1

    def _step(self, policy: GroupPolicy, ascent: Ascent, devices: Tensor, gains: Tensor) -> None:
        log_probs = policy.log_probs(devices)
        goal = objective(log_probs, devices, gains)
        if self._settings.entropy:
            goal = goal + self._settings.entropy * entropy(log_probs)
        ascent.step(goal)

    def _gains(self, times: Array) -> Array:
        """(k,) what the baseline is above the reward; the reward is to become small."""
        rewards = np.sqrt(times)
        mean, decay = float(rewards.mean()), self._settings.decay
        before = float(self.numbers[0]) or mean
        self.numbers[0] = decay * before + (1 - decay) * mean
        gains = np.asarray(before - rewards)
        if not self._settings.normalise:
            return gains
        return normalised(times) if np.ptp(times) > 0 else _scaled(gains)


def objective(log_probs: Tensor, devices: Tensor, gains: Tensor) -> Tensor:
    """1/K sum_i (B - r(P_i)) log p(P_i), whose gradient is REINFORCE's estimate of -dE[r]/dtheta.

    Args:
        log_probs: (k, g, d) of every device.
        devices: (k, g) the placements P.
        gains: (k,) B - r(P).
    """
    of_placements = log_probs.gather(2, devices.unsqueeze(2)).sum((1, 2))
    return (gains * of_placements).mean()


def _scaled(gains: Array) -> Array:
    """Where all times of a batch are equal, as when all fail, only the baseline tells good from
    bad; a policy that is sure of a failure would otherwise never leave it."""
    return np.asarray(gains / max(float(np.sqrt(np.square(gains).mean())), 1e-6))


def colocrl_learner(
    problem: Problem, learning: Learning, settings: ColocSettings, seed: int
) -> SequenceLearner:
    """The learner of a problem."""
    groups = grouped(problem, learning, settings.grouping, settings.groups)
    policy = GroupPolicy(problem, groups, settings.shape, generator(seed, 0))
    return SequenceLearner(
        groups,
        policy,
        Ascent(policy, "adam", settings.learning_rate, settings.clip),
        Reinforce(settings),
        placements=settings.K,
        repeats=settings.repeats if learning.noise else 1,
        failure=failure_seconds(problem),
        seed=seed,
    )
