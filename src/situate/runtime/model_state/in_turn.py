"""Optimisers that update one parameter after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


class UpdatesInTurn(torch.optim.Optimizer):
    """The loop over all parameters with a gradient; subclasses update one of them."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update all parameters with a gradient."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, parameter: torch.Tensor, group: Mapping[str, Any]) -> None:
        raise NotImplementedError
