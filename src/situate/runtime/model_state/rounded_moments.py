"""AdamW with moments in bfloat16, or in 8 bits with a scale for each block.

The arithmetic is that of `torch.optim.AdamW` in float32. The moments are rounded after the update,
which reads them before.

8 bits: Dettmers et al., 8-bit Optimizers via Block-wise Quantization (arXiv:2110.02861), section 2.
Codes, scales and their rounding are those of torchao (`torchao/optim/quant_utils.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch

from situate.runtime.model_state.adam import update_adamw
from situate.runtime.model_state.in_turn import UpdatesInTurn
from situate.torch_capture.updates.optimizer_state import BLOCK, state_tensors

Tensors = Sequence[torch.Tensor]
Update = Callable[[Tensors, torch.Tensor], None]
"""Updates a parameter and two moments, all float32, by a gradient."""

SMALLEST_SCALE = 1e-12
"""Of a block of zeros, as in torchao."""


class AdamWBf16(UpdatesInTurn, torch.optim.AdamW):
    """AdamW with moments in bfloat16."""

    kind = "adamw-bf16"

    def _update(self, parameter: torch.Tensor, group: Mapping[str, Any]) -> None:
        state = self._state_of(parameter)
        parts = state_tensors(self.kind, tuple(parameter.shape))
        moments = [state[part.name] for part in parts]

        def update(wide: Tensors, gradient: torch.Tensor) -> None:
            update_adamw(wide, gradient, state["step"], group)

        assert parameter.grad is not None
        update_rounded([parameter, *moments], parameter.grad, update)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; its tensors keep their types, which PyTorch would change to the
        parameters'."""
        super().load_state_dict(state_dict)
        parameters = [p for group in self.param_groups for p in group["params"]]
        for number, saved in state_dict["state"].items():
            parameter = parameters[number]
            for part in state_tensors(self.kind, tuple(parameter.shape)):
                self.state[parameter][part.name] = saved[part.name].to(parameter.device, copy=True)

    def _state_of(self, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
        """The state of a parameter; zeros before its first update."""
        state: dict[str, torch.Tensor] = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), device="cpu")
            for part in state_tensors(self.kind, tuple(parameter.shape)):
                dtype = getattr(torch, part.dtype) if part.dtype else parameter.dtype
                state[part.name] = torch.zeros(part.shape, dtype=dtype, device=parameter.device)
        return state


class AdamW8bit(AdamWBf16):
    """AdamW with moments of 8 bits, in blocks of 256 elements."""

    kind = "adamw8bit"


def update_rounded(parts: Tensors, gradient: torch.Tensor, update: Update) -> None:
    """Update a parameter by float32 arithmetic, and round its moments to their types."""
    parameter, *moments = parts
    if len(moments) == 4:
        _update_codes(parameter, moments, gradient, update)
        return
    wide = [part.float() for part in parts]
    update(wide, gradient.float())
    for part, new in zip(parts, wide, strict=True):
        part.copy_(new)


def _update_codes(
    parameter: torch.Tensor, moments: Tensors, gradient: torch.Tensor, update: Update
) -> None:
    mean_codes, mean_scale, square_codes, square_scale = moments
    mean = dequantized(mean_codes, mean_scale, signed=True)
    square = dequantized(square_codes, square_scale, signed=False)
    wide = parameter.float()
    update([wide, mean, square], gradient.float())
    parameter.copy_(wide)
    quantize(mean, mean_codes, mean_scale, signed=True)
    quantize(square, square_codes, square_scale, signed=False)


def dequantized(codes: torch.Tensor, scale: torch.Tensor, *, signed: bool) -> torch.Tensor:
    """The numbers of codes.

    Args:
        codes: uint8, of any shape.
        scale: (elements / 256,) float32.
        signed: the first moment has a sign, the second has none.
    """
    values = _code_values(signed).to(codes.device)
    # Indices of uint8 would be a mask.
    numbers = values[codes.int()].view(scale.shape[0], -1) * scale.view(-1, 1)
    return numbers.view(codes.shape)


def quantize(
    numbers: torch.Tensor, codes: torch.Tensor, scale: torch.Tensor, *, signed: bool
) -> None:
    """Write the nearest codes of numbers, and the largest magnitude of each block."""
    blocks = numbers.reshape(-1, BLOCK)
    scale.copy_(blocks.abs().amax(-1).clip(SMALLEST_SCALE))
    values = _code_values(signed).to(codes.device)
    scaled = blocks / scale.view(-1, 1)
    # The largest value that is not above the number.
    below = (torch.searchsorted(values, scaled, right=True) - 1).clip(min=0)
    above = (below + 1).clip(max=len(values) - 1)
    # A number halfway between two codes takes the upper one.
    is_above = scaled - values[below] >= (values[above] - values[below]) * 0.5
    codes.copy_(torch.where(is_above, above, below).view(codes.shape))


@lru_cache(maxsize=2)
def _code_values(signed: bool) -> torch.Tensor:
    """(256,) the numbers from -1, or 0, to 1 that codes stand for, in rising order.

    The dynamic tree type of arXiv:1511.04561: seven decades, each with twice as many numbers as
    the decade below.
    """
    values = [0.0, 1.0]
    for decade in range(7):
        count = 2 ** (decade if signed else decade + 1)
        limits = torch.linspace(0.1, 1, count + 1, dtype=torch.float32, device="cpu")
        magnitudes = (10 ** (decade - 6)) * ((limits[:-1] + limits[1:]) / 2)
        values += magnitudes.tolist()
        values += (-magnitudes).tolist() if signed else []
    return torch.tensor(sorted(values), dtype=torch.float32, device="cpu")
