"""The tensors that an optimiser keeps for each parameter."""

from __future__ import annotations

import math
from dataclasses import dataclass

from situate.data.update_rule import OPTIMIZERS

BLOCK = 256
"""Elements of an 8-bit state with a common scale."""

MIN_8BIT = 4096
"""Elements of the smallest tensor whose states have 8 bits, as in bitsandbytes and torchao."""

MUON_STEPS = 5
"""Newton-Schulz steps of `torch.optim.Muon`."""

ITEM_BYTES = {"bfloat16": 2, "float32": 4, "uint8": 1}


@dataclass(frozen=True)
class StateTensor:
    """A tensor of an optimiser's state.

    Attributes:
        name: in the optimiser's state dict.
        shape: of the tensor.
        dtype: a key of `ITEM_BYTES`; None for the parameter's own.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str | None = None


def state_tensors(kind: str, shape: tuple[int, ...]) -> tuple[StateTensor, ...]:
    """The state of a parameter of this shape; a count of steps is left out.

    Args:
        kind: one of `situate.data.update_rule.OPTIMIZERS`.
        shape: of the parameter.
    """
    match kind:
        case "sgd":
            return ()
        case "momentum":
            return (StateTensor("momentum_buffer", shape),)
        case "adafactor":
            return _factors(shape)
        case "muon" if is_matrix(shape):
            return (StateTensor("momentum_buffer", shape),)
        case "adamw8bit" if is_8bit(shape):
            return _codes(shape)
        case "adamw-bf16":
            return _moments(shape, "bfloat16")
        case _:
            return _moments(shape)


def state_bytes(kind: str, shape: tuple[int, ...], itemsize: int) -> int:
    """Bytes of the state of a parameter.

    Args:
        kind, shape: as in `state_tensors`.
        itemsize: bytes of an element of the parameter.
    """
    return sum(
        math.prod(tensor.shape) * (ITEM_BYTES[tensor.dtype] if tensor.dtype else itemsize)
        for tensor in state_tensors(kind, shape)
    )


def update_flops(kind: str, shape: tuple[int, ...]) -> int:
    """Arithmetic operations of the update of a parameter.

    Muon multiplies an (m, n) matrix, m <= n, in each step by its transpose, the (m, m) result by
    itself, and that by the matrix.

    Args:
        kind, shape: as in `state_tensors`.
    """
    flops = OPTIMIZERS[kind] * math.prod(shape)
    if kind == "muon" and is_matrix(shape):
        m, n = sorted(shape)
        flops += MUON_STEPS * (4 * m * m * n + 2 * m**3)
    return flops


def is_matrix(shape: tuple[int, ...]) -> bool:
    """True if Muon updates a parameter of this shape; AdamW updates the others."""
    return len(shape) == 2


def is_8bit(shape: tuple[int, ...]) -> bool:
    """True if 8-bit AdamW has states of 8 bits for a parameter of this shape.

    The rule is that of torchao's `_AdamBase._new_buffer`; smaller tensors and those without whole
    blocks have states of the parameter's type.
    """
    count = math.prod(shape)
    return count >= MIN_8BIT and count % BLOCK == 0


def _moments(shape: tuple[int, ...], dtype: str | None = None) -> tuple[StateTensor, ...]:
    return tuple(StateTensor(name, shape, dtype) for name in ("exp_avg", "exp_avg_sq"))


def _codes(shape: tuple[int, ...]) -> tuple[StateTensor, ...]:
    blocks = (math.prod(shape) // BLOCK,)
    return tuple(
        tensor
        for name in ("exp_avg", "exp_avg_sq")
        for tensor in (
            StateTensor(f"{name}_codes", shape, "uint8"),
            StateTensor(f"{name}_scale", blocks, "float32"),
        )
    )


def _factors(shape: tuple[int, ...]) -> tuple[StateTensor, ...]:
    """Adafactor's second moment: of a matrix a column of rows and a row of columns."""
    if len(shape) < 2:
        return (StateTensor("variance", shape),)
    return (
        StateTensor("row_var", (*shape[:-1], 1)),
        StateTensor("col_var", (*shape[:-2], 1, shape[-1])),
    )
