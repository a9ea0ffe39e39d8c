"""ColocRL's update: REINFORCE with a moving average for a baseline.

Mirhoseini et al., ICML 2017.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from situate.policies.ascent import Ascent
from situate.policies.entropy import entropy
from situate.policies.group_policy import GroupPolicy
from situate.solvers.colocrl import ColocSettings

Array = NDArray[np.float64]


class Reinforce:
    """One step along the policy gradient of E[sqrt(time)] after every batch.

    Attributes:
        numbers: the baseline, and how many updates there were.
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
        learnt = ok if self.numbers[1] >= self._settings.late else np.ones(len(times), np.bool_)
        self.numbers[1] += 1
        if not learnt.any():
            return
        advantage = torch.from_numpy(self._advantage(np.sqrt(times[learnt])).astype(np.float32))
        devices = devices[torch.from_numpy(learnt)]
        log_probs = policy.log_probs(devices)
        of_placement = log_probs.gather(2, devices.unsqueeze(2)).sum((1, 2))
        objective = (advantage * of_placement).mean()
        if self._settings.entropy:
            objective = objective + self._settings.entropy * entropy(log_probs)
        ascent.step(objective)

    def _advantage(self, rewards: Array) -> Array:
        """(k,) what the baseline exceeds the rewards by; these are to be made small."""
        baseline, updates = self.numbers
        mean = float(rewards.mean())
        if updates == 1:
            baseline = mean
        decay = self._settings.decay
        self.numbers[0] = decay * baseline + (1 - decay) * mean
        if self._settings.normalise:
            return np.asarray((mean - rewards) / max(float(rewards.std()), 1e-9))
        return np.asarray(baseline - rewards)
