"""`colocrl`: REINFORCE of a sequence-to-sequence policy, with a moving average for a baseline.

A. Mirhoseini et al., *Device Placement Optimization with Reinforcement Learning*, ICML 2017. The
policy draws K placements P_1, ..., P_K, and r(P) is the square root of a step's seconds. The goal
is to minimise the expectation J = E[r(P)]. Every K placements, Adam takes a step against

    dJ/dtheta  ~  1/K sum_i (r(P_i) - B) d/dtheta log p(P_i)

and then the baseline becomes B <- 0.9 B + 0.1 mean(r). docs/methods/colocrl.md lists the choices
that the source leaves open. The network is `situate.policies.seq2seq`; `sequence_learner.py` draws
placements from it and saves its state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from situate.data.arrays import Floats
from situate.data.problem import Problem
from situate.policies.gradient_ascent import Ascent
from situate.policies.group_policy import GroupPolicy
from situate.policies.seq2seq import entropy
from situate.policies.shapes import Shape
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.rewards import log_rewards, normalised
from situate.solvers.learned.sequence_learner import SequenceLearner, sequence_learner

PAPER_SHAPE = Shape(hidden=128)


@dataclass(frozen=True)
class ColocSettings:
    """The defaults are the paper's (ICML 2017), and ours where it is silent; see
    docs/methods/colocrl.md.

    Attributes:
        shape: of the policy; ours.
        grouping, groups: rule and number, as `situate.grouping.group` takes them; the paper places
            colocation groups.
        K: placements between two updates, one for each worker of a controller; 4 to 8 in the
            paper.
        learning_rate: of Adam; ours.
        clip: largest norm of a gradient; None for no limit; ours.
        decay: of the moving average that serves as the baseline; ours.
        late: updates after which failed placements are ignored; 5,000 in the paper.
        normalise: replace r - B by the logarithm of the seconds, standardised over the batch. If
            all are equal, it is relative to the baseline.
        entropy: weight of the policy's entropy; 0 for none, as in the paper's settings.
    """

    shape: Shape = PAPER_SHAPE
    grouping: str = "colocation"
    groups: int | None = None
    K: int = 8
    learning_rate: float = 1e-3
    clip: float | None = 1.0
    decay: float = 0.9
    late: int = 5000
    normalise: bool = False
    entropy: float = 0.0


PAPER = ColocSettings()
TUNED = ColocSettings(
    shape=Shape(hidden=128, score="general", aligned=True),
    grouping="structure",
    groups=96,
    K=12,
    learning_rate=3e-3,
    normalise=True,
    entropy=3.0,
)


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
        """One step after placements: devices (k, g), seconds (k,) and successes `ok` (k,)."""
        # Late in the search neither the gradient nor the baseline includes failed placements.
        mask = ok | (self.numbers[1] < self._settings.late)
        if mask.any():
            advantages = torch.from_numpy(self._advantages(times[mask]).astype(np.float32))
            self._step(policy, ascent, devices[torch.from_numpy(mask)], advantages)
        self.numbers[1] += 1

    def _step(
        self, policy: GroupPolicy, ascent: Ascent, devices: Tensor, advantages: Tensor
    ) -> None:
        log_probs = policy.log_probs(devices)
        gain = objective(log_probs, devices, advantages)
        if self._settings.entropy:
            gain = gain + self._settings.entropy * entropy(log_probs)
        ascent.step(gain)

    def _advantages(self, times: Floats) -> Floats:
        """(k,) advantages B - r; the reward r is minimised."""
        rewards = np.sqrt(times)
        mean, decay = float(rewards.mean()), self._settings.decay
        # The baseline is the average before this batch; the first batch is its own baseline.
        baseline = float(self.numbers[0]) or mean
        self.numbers[0] = decay * baseline + (1 - decay) * mean
        if not self._settings.normalise:
            return np.asarray(baseline - rewards)
        if np.ptp(times) > 0:
            return normalised(log_rewards(times))
        # Equal rewards have no mean to compare with. A policy that always draws one failing
        # placement would never change, so the rewards are compared with the baseline.
        return normalised(-rewards, baseline=-baseline)


def objective(log_probs: Tensor, devices: Tensor, advantages: Tensor) -> Tensor:
    """1/K sum_i (B - r(P_i)) log p(P_i), whose gradient is REINFORCE's estimate of -dE[r]/dtheta.

    Args:
        log_probs: (k, g, d) of every device.
        devices: (k, g) the placements P.
        advantages: (k,) B - r(P).
    """
    # (k, g, d) -> (k, g) of the drawn devices -> (k,) log p(P) = sum_n log q(a_n | s_n).
    placement_log_probs = log_probs.gather(2, devices.unsqueeze(2)).sum((1, 2))
    return (advantages * placement_log_probs).mean()


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> SequenceLearner:
    """The learner in one of its settings."""
    return make(problem, learning, PAPER if learning.settings == "paper" else TUNED, seed)


def make(
    problem: Problem, learning: Learning, settings: ColocSettings, seed: int
) -> SequenceLearner:
    """The learner in any settings; `learning.grouping` overrides theirs."""
    return sequence_learner(problem, learning, settings, Reinforce(settings), seed, ascent="adam")
