"""What training software does beyond the formulas: its kernels, its peaks, its host time.

Facts of kernels come from the programs' sources. The constants of `Pace` are fits to published
runs (`benchmarks/layouts`), in which each run is predicted by constants of other models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

GIB = 2**30

Head = Literal["eager", "fused", "chunked"]

PARTS = (
    *("matrices", "attention", "memory", "launches", "tensor", "context", "experts", "pipeline"),
    *("data", "update", "host"),
)
"""Parts of a step's seconds."""


@dataclass(frozen=True)
class Pace:
    """Factors by which the parts of a step differ from the formulas.

    Attributes:
        factors: by part; 1 where missing.
        error: median relative error of predicted seconds, cross-validated.
    """

    factors: dict[str, float] = field(default_factory=dict)
    error: float = 0.25


@dataclass(frozen=True)
class Software:
    """A program that trains.

    Attributes:
        name: in tables.
        flash: attention is one kernel that stores no scores.
        dropout: masks of dropout are stored.
        head: bytes for each logit at the peak: `eager` cross entropy holds copies in float32,
            `fused` one, `chunked` none of all tokens.
        logit_bytes: bytes for each logit, by `head`.
        selective: share of a layer's saved activations that selective recompute keeps, or 0 if it
            repeats the core of attention alone.
        workspace: bytes of cuBLAS and other libraries beside all tensors.
        overlap: share of the time of gradients' collectives that the backward pass hides.
        layer_launch: seconds in which the host launches the forward pass of a layer.
        pace: the factors of its parts.
    """

    name: str
    flash: bool
    dropout: bool
    logit_bytes: float
    selective: float
    workspace: int
    overlap: float
    layer_launch: float
    pace: Pace = Pace()


SOFTWARE = {
    software.name: software
    for software in (
        # Megatron-LM keeps bfloat16 logits, and turns a float32 copy into softmax and gradient in
        # place (`tensor_parallel/cross_entropy.py`).
        Software("megatron", True, False, 6, 0, 96 * 2**20, 0.7, 250e-6),
        # torchtitan compiles its loss: bfloat16 logits, their float32 copy and the gradient.
        Software("torchtitan", True, False, 10, 0.5, 96 * 2**20, 0.9, 250e-6),
        Software("deepspeed", True, False, 10, 0, 96 * 2**20, 0.6, 400e-6),
        Software("torch", True, False, 14, 0, 96 * 2**20, 0.6, 400e-6),
    )
}
"""Programs by name."""
