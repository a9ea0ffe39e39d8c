"""Gradient ascent on the parameters of a policy, which several controllers may share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Rule = Literal["plain", "adam"]

ADAM_DECAYS = 0.9, 0.999
"""Decay rates of Adam's two averages (Kingma and Ba, ICLR 2015)."""


class ParameterServer:
    """Parameters that one or more controllers update, each by gradients of an earlier version.

    Every gradient makes one step, in the order of arrival: plain ascent or Adam (Kingma and Ba,
    ICLR 2015, Algorithm 1).

    Attributes:
        parameters: (p,) the current values.
        steps: number of steps so far.
        staleness: number of gradients by the steps between their parameters' pull and their
            arrival.
        stalest: staler gradients are counted and make no step; None for no limit.
    """

    def __init__(self, parameters: Tensor, rule: Rule) -> None:
        self.parameters = parameters
        self.steps = 0
        self.staleness: Counter[int] = Counter()
        self.stalest: int | None = None
        self._rule = rule
        size = len(parameters) if rule == "adam" else 0
        self._mean, self._square = torch.zeros(size), torch.zeros(size)

    def push(self, gradient: Tensor, pulled: int, learning_rate: float) -> None:
        """Make one step, unless the gradient is too stale.

        Args:
            gradient: (p,), which is overwritten.
            pulled: `steps` at the pull of its parameters.
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
        """Turn a gradient into the step of learning rate 1, in place."""
        first, second = ADAM_DECAYS
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
        """Restore `state`, which has the same names and shapes."""
        self.parameters.copy_(torch.tensor(state["parameters"]))
        self._mean, self._square = torch.tensor(state["mean"]), torch.tensor(state["square"])
        self.steps = int(state["steps"][0])


class Ascent:
    """Stochastic gradient ascent, plain or by Adam.

    Args:
        module: with p trainable parameters.
        rule: plain or Adam.
        learning_rate: of each step.
        clip: largest norm of a gradient; longer ones are scaled down. None for no limit.
    """

    def __init__(
        self, module: nn.Module, rule: Rule, learning_rate: float, clip: float | None = None
    ) -> None:
        self.learning_rate = learning_rate
        self._parameters = [each for each in module.parameters() if each.requires_grad]
        self._clip = clip
        self._server = ParameterServer(self.pulled(), rule)
        self._pulled_at = 0
        self._gradient = torch.empty_like(self._server.parameters)

    @property
    def server(self) -> ParameterServer:
        """The server of the parameters; its own, unless `share` gave it another."""
        return self._server

    @property
    def pulled_at(self) -> int:
        """Steps of the server when the module last took over its parameters."""
        return self._pulled_at

    def share(self, server: ParameterServer) -> None:
        """Use the parameters of a server that other controllers update too."""
        self._server = server
        self.hold(server.parameters, server.steps)

    def step(self, objective: Tensor) -> None:
        """One step towards a larger objective, a scalar function of the module's parameters. The
        module then takes over the server's parameters."""
        # A parameter that the objective does not read has a gradient of zeros, not None.
        gradients = torch.autograd.grad(
            objective, self._parameters, allow_unused=True, materialize_grads=True
        )
        torch.cat([tensor.flatten() for tensor in gradients], out=self._gradient)
        if self._clip is not None:
            # The factor is 1 where the norm is below `clip`: no branch on a tensor's value, no
            # division by 0.
            self._gradient *= self._clip / torch.clamp(self._gradient.norm(), min=self._clip)
        self._server.push(self._gradient, self._pulled_at, self.learning_rate)
        self.hold(self._server.parameters, self._server.steps)

    def pulled(self) -> Tensor:
        """(p,) a copy of the module's parameters, as of the last pull."""
        return torch.cat([tensor.detach().flatten() for tensor in self._parameters])

    def hold(self, parameters: Tensor, steps: int) -> None:
        """Set the module's parameters to (p,) values that the server had after `steps` steps."""
        parts = torch.split(parameters, [parameter.numel() for parameter in self._parameters])
        with torch.no_grad():
            for parameter, part in zip(self._parameters, parts, strict=True):
                parameter.copy_(part.view_as(parameter))
        self._pulled_at = steps

    def state(self) -> dict[str, NDArray[np.generic]]:
        """The server's state; see `ParameterServer.state`."""
        return self._server.state()

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Restore `state`, which has the same names and shapes."""
        self._server.restore(state)
        self.hold(self._server.parameters, self._server.steps)
