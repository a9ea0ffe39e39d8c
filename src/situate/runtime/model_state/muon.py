"""Muon for matrices with AdamW for all other parameters, by PyTorch's own functions.

Muon is of K. Jordan (kellerjordan.github.io/posts/muon). `torch.optim.Muon` refuses parameters that
are no matrices, and its documentation gives them to AdamW.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

# PyTorch exports the class alone, which would own its state.
from torch.optim._muon import muon

from situate.runtime.model_state.adam import update_adamw
from situate.runtime.model_state.in_turn import UpdatesInTurn
from situate.torch_capture.updates.optimizer_state import is_matrix, state_tensors

Tensors = Sequence[torch.Tensor]

MUON_OPTIONS = (
    *("lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "eps", "ns_steps"),
    "adjust_lr_fn",
)
ADAMW_OPTIONS = ("lr", "betas", "eps", "weight_decay", "maximize")


class MuonAdamW(UpdatesInTurn):
    """`torch.optim.Muon` for the matrices among the parameters, `torch.optim.AdamW` for the rest.

    Args:
        params: all parameters.
        muon, adamw: options of the two, over their defaults.
    """

    kind = "muon"

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        muon: Mapping[str, Any] | None = None,
        adamw: Mapping[str, Any] | None = None,
    ) -> None:
        parameters = list(params)
        matrices = [p for p in parameters if is_matrix(tuple(p.shape))]
        others = [p for p in parameters if not is_matrix(tuple(p.shape))]
        groups = [
            {"params": matrices, **_defaults(torch.optim.Muon, (1, 1), MUON_OPTIONS, muon)},
            {"params": others, **_defaults(torch.optim.AdamW, (1,), ADAMW_OPTIONS, adamw)},
        ]
        super().__init__([group for group in groups if group["params"]], {})

    def _update(self, parameter: torch.Tensor, group: Mapping[str, Any]) -> None:
        assert parameter.grad is not None
        state = self._state_of(parameter)
        names = [part.name for part in state_tensors(self.kind, tuple(parameter.shape))]
        parts = [parameter, *(state[name] for name in names)]
        count = state.get("step", torch.zeros((), device="cpu"))
        update_muon(parts, parameter.grad, count, group)

    def _state_of(self, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
        """The state of a parameter; zeros before its first update. Muon counts no steps."""
        state: dict[str, torch.Tensor] = self.state[parameter]
        if not state:
            for part in state_tensors(self.kind, tuple(parameter.shape)):
                state[part.name] = torch.zeros_like(parameter)
            if "momentum_buffer" not in state:
                state["step"] = torch.zeros((), device="cpu")
        return state


def _defaults(
    make: type[torch.optim.Optimizer],
    shape: tuple[int, ...],
    names: Sequence[str],
    options: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The options of an optimiser of PyTorch, which checks them."""
    checked: Any = make([torch.zeros(shape, requires_grad=True)], **options or {})
    return {name: checked.param_groups[0][name] for name in names}


def update_muon(
    parts: Tensors, gradient: torch.Tensor, count: torch.Tensor, group: Mapping[str, Any]
) -> None:
    """Update a matrix and its momentum by Muon, another parameter and its moments by AdamW.

    Args:
        parts: the parameter, and one or two moments.
        gradient: of the parameter.
        count: of earlier steps.
        group: the settings of the parameter's group.
    """
    if len(parts) > 2:
        update_adamw(parts, gradient, count, group)
        return
    parameter, momentum = parts
    options = {name: group[name] for name in MUON_OPTIONS}
    muon([parameter], [gradient], [momentum], has_complex=False, **options)
    # Muon's own function counts no steps.
    count += 1
