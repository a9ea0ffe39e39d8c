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
"""Decay rates of Adam's two averages (Kingma and Ba, ICLR 2015)."""


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
        self._change = torch.empty(size, dtype=torch.float32)
        self._steps = 0

    def step(self, objective: Tensor) -> None:
        """One step towards a larger objective, a number that depends on the parameters."""
        # A parameter that the objective does not read has a gradient of zeros, not None.
        gradients = torch.autograd.grad(
            objective, self._parameters, allow_unused=True, materialize_grads=True
        )
        torch.cat([each.flatten() for each in gradients], out=self._change)
        if self._clip is not None:
            # The factor is 1 where the norm is below `clip`: no branch on a tensor's value, no
            # division by 0.
            self._change *= self._clip / torch.clamp(self._change.norm(), min=self._clip)
        self._steps += 1
        if self._rule == "adam":
            self._adam(self._change)
        with torch.no_grad():
            for parameter, part in zip(self._parameters, self._split(self._change), strict=True):
                parameter.add_(part, alpha=self.learning_rate)

    def _adam(self, gradient: Tensor) -> None:
        """Turn a gradient into the step of learning rate 1, in its place."""
        first, second = DECAYS
        # m = beta1 m + (1 - beta1) g, and v = beta2 v + (1 - beta2) g^2, all (p,).
        self._mean.lerp_(gradient, 1 - first)
        self._square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        # The gradient's memory is free from here on. Bias corrections are applied to sqrt(v) and to
        # the quotient as scalars, which spares two arrays (p,).
        size = torch.sqrt(self._square, out=gradient)
        size.mul_((1 - second**self._steps) ** -0.5).add_(1e-8)
        torch.div(self._mean, size, out=gradient).mul_(1 / (1 - first**self._steps))

    def _split(self, flat: Tensor) -> list[Tensor]:
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
            for parameter, part in zip(self._parameters, self._split(saved), strict=True):
                parameter.copy_(part)
        self._mean = torch.tensor(state["mean"])
        self._square = torch.tensor(state["square"])
        self._steps = int(state["steps"][0])
