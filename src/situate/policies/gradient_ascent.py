"""Gradient ascent on a policy's parameters, whose state is a few arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from situate.policies.parameter_server import ParameterServer, Rule


class Ascent:
    """Stochastic gradient ascent, plain or by Adam.

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
        self._clip = clip
        self._server = ParameterServer(self.pulled(), rule)
        self._pulled_at = 0
        self._gradient = torch.empty_like(self._server.parameters)

    @property
    def server(self) -> ParameterServer:
        """The parameters that it climbs; its own, unless it was told of others."""
        return self._server

    @property
    def pulled_at(self) -> int:
        """Steps of the server when the module's parameters were its."""
        return self._pulled_at

    def share(self, server: ParameterServer) -> None:
        """Climb the parameters of a server, which others change too, from now on."""
        self._server = server
        self.hold(server.parameters, server.steps)

    def step(self, objective: Tensor) -> None:
        """One step towards a larger objective, a number that depends on the module's parameters,
        which then are the server's."""
        # A parameter that the objective does not read has a gradient of zeros, not None.
        gradients = torch.autograd.grad(
            objective, self._parameters, allow_unused=True, materialize_grads=True
        )
        torch.cat([each.flatten() for each in gradients], out=self._gradient)
        if self._clip is not None:
            # The factor is 1 where the norm is below `clip`: no branch on a tensor's value, no
            # division by 0.
            self._gradient *= self._clip / torch.clamp(self._gradient.norm(), min=self._clip)
        self._server.push(self._gradient, self._pulled_at, self.learning_rate)
        self.hold(self._server.parameters, self._server.steps)

    def pulled(self) -> Tensor:
        """(p,) a copy of the module's parameters: the server's, as they were when pulled."""
        return torch.cat([each.detach().flatten() for each in self._parameters])

    def hold(self, parameters: Tensor, steps: int) -> None:
        """Hold parameters (p,) that the server had after so many steps."""
        parts = torch.split(parameters, [parameter.numel() for parameter in self._parameters])
        with torch.no_grad():
            for parameter, part in zip(self._parameters, parts, strict=True):
                parameter.copy_(part.view_as(parameter))
        self._pulled_at = steps

    def state(self) -> dict[str, NDArray[np.generic]]:
        """The server's state; see `ParameterServer.state`."""
        return self._server.state()

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Become what `state`, of the same names and shapes, says."""
        self._server.restore(state)
        self.hold(self._server.parameters, self._server.steps)
