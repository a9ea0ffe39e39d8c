"""The parameters that one or more controllers climb, with what their optimiser keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Rule = Literal["plain", "adam"]

DECAYS = 0.9, 0.999
"""Decay rates of Adam's two averages (Kingma and Ba, ICLR 2015)."""


class ParameterServer:
    """Takes gradients of its p parameters, or of what they were before, in the order in which they
    come, and makes a step of each: plain ascent or Adam (Kingma and Ba, ICLR 2015, Algorithm 1).

    Attributes:
        parameters: (p,) as they are now.
        steps: how many were made.
        staleness: how many gradients were of parameters that so many steps changed since.
        stalest: gradients that are staler are counted and make no step; None for no limit.
    """

    def __init__(self, parameters: Tensor, rule: Rule) -> None:
        self.parameters = parameters
        self.steps = 0
        self.staleness: Counter[int] = Counter()
        self.stalest: int | None = None
        self._rule = rule
        kept = len(parameters) if rule == "adam" else 0
        self._mean, self._square = torch.zeros(kept), torch.zeros(kept)

    def push(self, gradient: Tensor, pulled: int, learning_rate: float) -> None:
        """One step, unless the gradient is too stale.

        Args:
            gradient: (p,), which is written over.
            pulled: `steps` when its parameters were pulled.
            learning_rate: of the step.
        """
        late = self.steps - pulled
        self.staleness[late] += 1
        if self.stalest is not None and late > self.stalest:
            return
        self.steps += 1
        if self._rule == "adam":
            self._adam(gradient)
        self.parameters.add_(gradient, alpha=learning_rate)

    def _adam(self, gradient: Tensor) -> None:
        """Turn a gradient into the step of learning rate 1, in its place."""
        first, second = DECAYS
        # m = beta1 m + (1 - beta1) g, and v = beta2 v + (1 - beta2) g^2, all (p,).
        self._mean.lerp_(gradient, 1 - first)
        self._square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        # The gradient's memory is free from here on. Bias corrections are applied to sqrt(v) and to
        # the quotient as scalars, which spares two arrays (p,).
        size = torch.sqrt(self._square, out=gradient)
        size.mul_((1 - second**self.steps) ** -0.5).add_(1e-8)
        torch.div(self._mean, size, out=gradient).mul_(1 / (1 - first**self.steps))

    def state(self) -> dict[str, NDArray[np.generic]]:
        """The parameters (p,), Adam's averages (p,) and the number of steps."""
        return {
            "parameters": self.parameters.numpy().copy(),
            "mean": self._mean.numpy().copy(),
            "square": self._square.numpy().copy(),
            "steps": np.array([self.steps], np.int64),
        }

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Become what `state`, of the same names and shapes, says."""
        self.parameters.copy_(torch.tensor(state["parameters"]))
        self._mean, self._square = torch.tensor(state["mean"]), torch.tensor(state["square"])
        self.steps = int(state["steps"][0])
