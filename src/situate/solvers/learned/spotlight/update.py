"""Spotlight's update: proximal policy optimisation with a KL penalty (Gao et al., ICML 2018).

Stage n of N places group n on a device a_n drawn from q(a_n | s_n). R is the seconds of the step,
R_bar their mean over all trials before. After K trials (Algorithm 1: one) the new policy q' ascends

    G / N  =  1/N sum_n [ q'(a_n | s_n) / q(a_n | s_n) (R_bar - R)  -  beta D_KL(q || q') ]

averaged over the trials, in `steps` steps (lines 17 to 21). docs/methods/spotlight.md lists the
choices that the source leaves open. `settings.py` has the numbers, `situate.policies.seq2seq` the
network, and `situate.solvers.learned.sequence_learner` the learner.
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
from situate.policies.seq2seq import divergence
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.rewards import log_rewards, normalised
from situate.solvers.learned.sequence_learner import SequenceLearner, sequence_learner
from situate.solvers.learned.spotlight.settings import SpotlightSettings


class Proximal:
    """Ascent on G / N (Algorithm 1, lines 17 to 22).

    Attributes:
        numbers: (sum of the seconds of all trials so far, number of trials).
    """

    def __init__(self, settings: SpotlightSettings) -> None:
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
        """Learn from devices (k, g) and their seconds (k,)."""
        rewards = torch.from_numpy(self._rewards(times).astype(np.float32))
        old: Tensor | None = None
        for _ in range(self._settings.steps):
            new = policy.log_probs(devices)
            # q is the policy that drew the trials: the value of `new` before the first step.
            old = new.detach() if old is None else old
            ascent.step(objective(new, old, devices, rewards, self._settings.beta))

    def _rewards(self, times: Floats) -> Floats:
        """(k,) R_bar - R, where R_bar is the mean of all earlier trials; with `normalise`, rewards
        standardised over these trials."""
        total, count = self.numbers
        self.numbers += float(times.sum()), len(times)
        if self._settings.normalise:
            return normalised(log_rewards(times))
        return np.asarray((total / count if count else times.mean()) - times)


def objective(new: Tensor, old: Tensor, devices: Tensor, rewards: Tensor, beta: float) -> Tensor:
    """Mean over k trials and g stages of q'(a) / q(a) (R_bar - R) - beta D_KL(q || q').

    Args:
        new, old: (k, g, d) logarithms of q' and q.
        devices: (k, g) the actions a.
        rewards: (k,) R_bar - R.
        beta: weight of the penalty.
    """
    actions = devices.unsqueeze(2)
    # (k, g) ratios of the drawn devices; the reward of a trial holds for all its stages.
    ratios = (new.gather(2, actions) - old.gather(2, actions)).exp().squeeze(2)
    return (ratios * rewards.unsqueeze(1)).mean() - beta * divergence(old, new)


def spotlight_learner(
    problem: Problem, learning: Learning, settings: SpotlightSettings, seed: int
) -> SequenceLearner:
    """The learner of a problem."""
    return sequence_learner(
        problem, learning, settings, Proximal(settings), seed, ascent=settings.ascent
    )
