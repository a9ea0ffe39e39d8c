"""`spotlight`: proximal policy optimisation of a sequence-to-sequence policy, with a KL penalty.

Y. Gao, L. Chen, B. Li, *Spotlight: Optimizing Device Placement for Training Deep Neural Networks*,
ICML 2018. Stage n of N places group n on a device a_n drawn from q(a_n | s_n). R is the seconds of
the step, R_bar their mean over all trials before. After K trials (Algorithm 1: one) the new policy
q' ascends

    G / N  =  1/N sum_n [ q'(a_n | s_n) / q(a_n | s_n) (R_bar - R)  -  beta D_KL(q || q') ]

averaged over the trials, in `steps` steps (lines 17 to 21). docs/methods/spotlight.md lists the
choices that the source leaves open. The network is `situate.policies.seq2seq`;
`sequence_learner.py` draws placements from it and saves its state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.policies.gradient_ascent import Ascent
from situate.policies.group_policy import GroupPolicy
from situate.policies.seq2seq import divergence
from situate.policies.shapes import Shape
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.rewards import log_rewards, normalised
from situate.solvers.learned.sequence_learner import SequenceLearner, sequence_learner

PAPER_SHAPE = Shape(hidden=64, layers=2, width=16)


@dataclass(frozen=True)
class SpotlightSettings:
    """The defaults are the paper's (ICML 2018), and ours where its slides are silent; see
    docs/methods/spotlight.md.

    Attributes:
        shape: of the policy; its two layers are the paper's, the widths ours.
        grouping, groups: rule and number, as `situate.grouping.group` takes them; the paper groups
            ops by a two-level prefix of their names.
        K: trials between two updates; one in Algorithm 1.
        steps: of ascent in an update; ten in Algorithm 1, line 21.
        ascent: rule of each step; plain in Algorithm 1.
        learning_rate: of each step; ours.
        clip: largest norm of a gradient; None for no limit.
        beta: weight of the KL penalty; 1 in Algorithm 1, line 3.
        normalise: the reward is minus the logarithm of a trial's seconds, standardised over its
            batch.
    """

    shape: Shape = PAPER_SHAPE
    grouping: str = "prefix"
    groups: int | None = None
    K: int = 1
    steps: int = 10
    ascent: Literal["plain", "adam"] = "plain"
    learning_rate: float = 0.1
    clip: float | None = None
    beta: float = 1.0
    normalise: bool = False


PAPER = SpotlightSettings()
TUNED = SpotlightSettings(
    shape=Shape(hidden=48, layers=2, score="general", aligned=True),
    grouping="structure",
    groups=96,
    K=12,
    steps=4,
    ascent="adam",
    learning_rate=1e-2,
    clip=1.0,
    normalise=True,
)


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
        """Several steps after trials: devices (k, g) and seconds (k,)."""
        advantages = torch.from_numpy(self._advantages(times).astype(np.float32))
        old: Tensor | None = None
        for _ in range(self._settings.steps):
            new = policy.log_probs(devices)
            # q is the policy that drew the trials: the value of `new` before the first step.
            old = new.detach() if old is None else old
            ascent.step(objective(new, old, devices, advantages, self._settings.beta))

    def _advantages(self, times: Floats) -> Floats:
        """(k,) advantages R_bar - R, where the baseline R_bar is the mean of all earlier trials;
        with `normalise`, rewards standardised over these trials."""
        total, count = self.numbers
        self.numbers += float(times.sum()), len(times)
        if self._settings.normalise:
            return normalised(log_rewards(times))
        baseline = total / count if count else times.mean()
        return np.asarray(baseline - times)


def objective(new: Tensor, old: Tensor, devices: Tensor, advantages: Tensor, beta: float) -> Tensor:
    """Mean over k trials and g stages of q'(a) / q(a) (R_bar - R) - beta D_KL(q || q').

    Args:
        new, old: (k, g, d) logarithms of q' and q.
        devices: (k, g) the actions a.
        advantages: (k,) R_bar - R.
        beta: weight of the penalty.
    """
    actions = devices.unsqueeze(2)
    # (k, g) ratios of the drawn devices; the advantage of a trial holds for all its stages.
    ratios = (new.gather(2, actions) - old.gather(2, actions)).exp().squeeze(2)
    return (ratios * advantages.unsqueeze(1)).mean() - beta * divergence(old, new)


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> SequenceLearner:
    """The learner in one of its settings."""
    return make(problem, learning, PAPER if learning.settings == "paper" else TUNED, seed)


def make(
    problem: Problem, learning: Learning, settings: SpotlightSettings, seed: int
) -> SequenceLearner:
    """The learner in any settings; `learning.grouping` overrides theirs."""
    return sequence_learner(
        problem, learning, settings, Proximal(settings), seed, ascent=settings.ascent
    )
