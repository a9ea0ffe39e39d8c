"""Spotlight's update: proximal policy optimisation with a KL penalty (Gao et al., ICML 2018)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from situate.policies.ascent import Ascent
from situate.policies.entropy import divergence, entropy
from situate.policies.group_policy import GroupPolicy
from situate.solvers.spotlight import SpotlightSettings

Array = NDArray[np.float64]


class Proximal:
    """Ascent on G / N (Algorithm 1, lines 17 to 22).

    Attributes:
        numbers: beta; the seconds of all trials so far, added up; how many there were.
    """

    def __init__(self, settings: SpotlightSettings) -> None:
        self._settings = settings
        self.numbers: Array = np.array([settings.beta, 0.0, 0.0])

    def update(
        self,
        policy: GroupPolicy,
        ascent: Ascent,
        devices: Tensor,
        times: Array,
        ok: NDArray[np.bool_],
    ) -> None:
        """Learn from devices (k, g) and their seconds (k,)."""
        advantage = torch.from_numpy(self._advantage(times).astype(np.float32))
        old: Tensor | None = None
        for _ in range(self._settings.steps):
            new = policy.log_probs(devices)
            old = new.detach() if old is None else old
            ascent.step(self._objective(new, old, devices, advantage))
        if self._settings.target is not None and old is not None:
            with torch.no_grad():
                self._adapt(
                    float(divergence(old, policy.log_probs(devices))), self._settings.target
                )

    def _advantage(self, times: Array) -> Array:
        """(k,) the reward R_bar - R, where R_bar is the mean over all trials before these."""
        _, total, count = self.numbers
        self.numbers[1:] += float(times.sum()), len(times)
        if self._settings.normalise:
            logs = np.log(np.maximum(times, 1e-300))
            return np.asarray((logs.mean() - logs) / max(float(logs.std()), 1e-6))
        return np.asarray((total / count if count else times.mean()) - times)

    def _objective(self, new: Tensor, old: Tensor, devices: Tensor, advantage: Tensor) -> Tensor:
        chosen = devices.unsqueeze(2)
        ratio = (new.gather(2, chosen) - old.gather(2, chosen)).exp().squeeze(2)
        gain = (ratio * advantage.unsqueeze(1)).mean() - float(self.numbers[0]) * divergence(
            old, new
        )
        return gain + self._settings.entropy * entropy(new) if self._settings.entropy else gain

    def _adapt(self, diverged: float, target: float) -> None:
        """Schulman et al., 2017, section 4."""
        if diverged > 1.5 * target:
            self.numbers[0] *= 2
        elif diverged < target / 1.5:
            self.numbers[0] /= 2
