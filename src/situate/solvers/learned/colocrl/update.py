"""ColocRL's update: REINFORCE with a moving average for a baseline (Mirhoseini et al., 2017).

The policy draws K placements P_1, ..., P_K, and r(P) is the square root of a step's seconds. The
goal is to minimise the expectation J = E[r(P)]. Every K placements, Adam takes a step against

    dJ/dtheta  ~  1/K sum_i (r(P_i) - B) d/dtheta log p(P_i)

and then the baseline becomes B <- 0.9 B + 0.1 mean(r). docs/methods/colocrl.md lists the choices
that the source leaves open. `settings.py` has the numbers, `situate.policies.seq2seq` the network,
and `situate.solvers.learned.sequence_learner` the learner.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.policies.gradient_ascent import Ascent
from situate.policies.group_policy import GroupPolicy
from situate.policies.seq2seq import entropy
from situate.solvers.learned.colocrl.settings import ColocSettings
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.rewards import log_rewards, normalised
from situate.solvers.learned.sequence_learner import SequenceLearner, sequence_learner


class Reinforce:
    """One step against the gradient of E[r(P)] after every batch, with r the root of the seconds.

    Attributes:
        numbers: (baseline B, number of updates); B is zero before the first update.
    """

    def __init__(self, settings: ColocSettings) -> None:
        self._settings = settings
        self.numbers: Floats = np.zeros(2)

    def update(
        self,
        policy: GroupPolicy,
        ascent: Ascent,
        devices: Tensor,
        times: Floats,
        ok: NDArray[np.bool_],
    ) -> None:
        """Learn from devices (k, g), their seconds (k,) and their successes `ok` (k,)."""
        # Late in the search neither the gradient nor the baseline includes failed placements.
        mask = ok | (self.numbers[1] < self._settings.late)
        if mask.any():
            gains = torch.from_numpy(self._gains(times[mask]).astype(np.float32))
            self._step(policy, ascent, devices[torch.from_numpy(mask)], gains)
        self.numbers[1] += 1

    def _step(self, policy: GroupPolicy, ascent: Ascent, devices: Tensor, gains: Tensor) -> None:
        log_probs = policy.log_probs(devices)
        goal = objective(log_probs, devices, gains)
        if self._settings.entropy:
            goal = goal + self._settings.entropy * entropy(log_probs)
        ascent.step(goal)

    def _gains(self, times: Floats) -> Floats:
        """(k,) advantages B - r; the reward r is minimised."""
        rewards = np.sqrt(times)
        mean, decay = float(rewards.mean()), self._settings.decay
        # The baseline is the average before this batch; the first batch is its own baseline.
        before = float(self.numbers[0]) or mean
        self.numbers[0] = decay * before + (1 - decay) * mean
        if not self._settings.normalise:
            return np.asarray(before - rewards)
        if np.ptp(times) > 0:
            return normalised(log_rewards(times))
        # Equal rewards have no mean to compare with. A policy that always draws one failing
        # placement would never change, so the rewards are compared with the baseline.
        return normalised(-rewards, baseline=-before)


def objective(log_probs: Tensor, devices: Tensor, gains: Tensor) -> Tensor:
    """1/K sum_i (B - r(P_i)) log p(P_i), whose gradient is REINFORCE's estimate of -dE[r]/dtheta.

    Args:
        log_probs: (k, g, d) of every device.
        devices: (k, g) the placements P.
        gains: (k,) B - r(P).
    """
    # (k, g, d) -> (k, g) of the drawn devices -> (k,) log p(P) = sum_n log q(a_n | s_n).
    of_placements = log_probs.gather(2, devices.unsqueeze(2)).sum((1, 2))
    return (gains * of_placements).mean()


def colocrl_learner(
    problem: Problem, learning: Learning, settings: ColocSettings, seed: int
) -> SequenceLearner:
    """The learner of a problem."""
    return sequence_learner(
        problem,
        learning,
        settings,
        Reinforce(settings),
        seed,
        ascent="adam",
    )
