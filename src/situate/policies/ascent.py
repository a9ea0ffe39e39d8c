"""Gradient ascent on a policy's parameters, whose state is a few arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Rule = Literal["plain", "adam"]

DECAYS = 0.9, 0.999
"""Of Adam's two averages (Kingma and Ba, ICLR 2015)."""


class Ascent:
    """Stochastic gradient ascent, plain or by Adam (Kingma and Ba, ICLR 2015, Algorithm 1).

    Args:
        module: whose p parameters are learnt.
        rule: which of the two.
        learning_rate: of each step.
        clip: largest norm of a gradient, longer ones are shortened to it; None for no limit.
    """

    def __init__(
        self, module: nn.Module, rule: Rule, learning_rate: float, clip: float | None = None
    ) -> None:
        self.learning_rate = learning_rate
        self._parameters = list(module.parameters())
        self._rule = rule
        self._clip = clip
        size = sum(parameter.numel() for parameter in self._parameters)
        kept = size if rule == "adam" else 0
        self._mean = torch.zeros(kept, dtype=torch.float32)
        self._square = torch.zeros(kept, dtype=torch.float32)
        self._steps = 0

    def step(self, objective: Tensor) -> None:
        """One step towards a larger objective, a number that depends on the parameters."""
        gradients = torch.autograd.grad(
            objective, self._parameters, allow_unused=True, materialize_grads=True
        )
        gradient = torch.cat([each.flatten() for each in gradients])
        if self._clip is not None:
            gradient *= self._clip / torch.clamp(gradient.norm(), min=self._clip)
        self._steps += 1
        self._add(self.learning_rate * (self._adam(gradient) if self._rule == "adam" else gradient))

    def _adam(self, gradient: Tensor) -> Tensor:
        first, second = DECAYS
        self._mean.lerp_(gradient, 1 - first)
        self._square.lerp_(gradient.square(), 1 - second)
        mean = self._mean / (1 - first**self._steps)
        square = self._square / (1 - second**self._steps)
        return mean / (square.sqrt() + 1e-8)

    def _add(self, change: Tensor) -> None:
        with torch.no_grad():
            for parameter, part in zip(self._parameters, self._parts(change), strict=True):
                parameter.add_(part)

    def _parts(self, flat: Tensor) -> list[Tensor]:
        """Views of (p,) numbers in the shapes of the parameters."""
        parts = torch.split(flat, [parameter.numel() for parameter in self._parameters])
        return [part.view_as(like) for part, like in zip(parts, self._parameters, strict=True)]

    def state(self) -> dict[str, NDArray[np.generic]]:
        """The parameters (p,), Adam's averages (p,) and the number of steps."""
        parameters = torch.cat([each.detach().flatten() for each in self._parameters])
        return {
            "parameters": parameters.numpy(),
            "mean": self._mean.numpy().copy(),
            "square": self._square.numpy().copy(),
            "steps": np.array([self._steps], np.int64),
        }

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Become what `state`, of the same names and shapes, says."""
        with torch.no_grad():
            saved = torch.tensor(state["parameters"])
            for parameter, part in zip(self._parameters, self._parts(saved), strict=True):
                parameter.copy_(part)
        self._mean = torch.tensor(state["mean"])
        self._square = torch.tensor(state["square"])
        self._steps = int(state["steps"][0])
