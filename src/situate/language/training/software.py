"""What training software does beyond the formulas: its kernels, its peaks, its host time.

Facts of kernels come from the programs' sources. The constants of `Pace` are fits to published
runs (`benchmarks/layouts`), in which each run is predicted by constants of other models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

GIB = 2**30

Attention = Literal["flash", "flash2", "scores"]
"""Kernels of attention: that of the GPU's generation (cuDNN, FlashAttention-3), FlashAttention-2,
or matrix products with scores in memory."""

PARTS = (
    *("matrices", "grouped", "attention", "memory", "launches", "tensor", "context", "experts"),
    *("pipeline", "data", "update", "host"),
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
        attention: the kernel of its attention.
        dropout: masks of dropout are stored.
        logit_bytes: bytes for each logit at the peak: in the type of the weights, their copies in
            float32, and their gradients.
        selective: share of a layer's saved activations that selective recompute keeps, or 0 if it
            repeats the core of attention alone.
        workspace: bytes of cuBLAS and other libraries beside all tensors.
        overlap: share of the time of gradients' collectives that the backward pass hides.
        layer_launch: seconds in which the host launches the forward pass of a layer.
        expert_launch: further seconds of a layer with experts.
        repeated: share of a layer's matrix products that selective recompute repeats.
        hidden: share of the collectives of tensor and expert parallelism that products hide.
        pace: the factors of its parts.
    """

    name: str
    attention: Attention
    dropout: bool
    logit_bytes: float
    selective: float
    workspace: int
    overlap: float
    layer_launch: float
    expert_launch: float
    repeated: float = 0.0
    hidden: float = 0.0
    pace: Pace = Pace()


SOFTWARE = {
    software.name: software
    for software in (
        # Megatron-LM keeps bfloat16 logits, and turns a float32 copy into softmax and gradient in
        # place (`tensor_parallel/cross_entropy.py`).
        Software("megatron", "flash", False, 6, 0, 96 * 2**20, 0.7, 250e-6, 0.3e-3, 0.0, 0.4),
        # Before flash attention, scores and masks of dropout stay in memory.
        Software("megatron-2021", "scores", True, 6, 0, 96 * 2**20, 0.0, 700e-6, 2e-3),
        # torchtitan compiles its loss: bfloat16 logits, their float32 copy and the gradient.
        Software("torchtitan", "flash2", False, 10, 0.5, 96 * 2**20, 0.9, 250e-6, 0.3e-3, 0.37),
        Software("torchtitan-async", "flash2", False, 10, 0.5, 96 * 2**20, 0.9, 250e-6, 0.3e-3, 0.37, 0.5),
        Software("torchtitan-eager", "flash2", False, 14, 0.5, 96 * 2**20, 0.9, 400e-6, 0.5e-3, 0.37),
        # llm-foundry's trainer, Composer, with FSDP of PyTorch 1.
        Software("composer", "flash2", False, 10, 0, 96 * 2**20, 0.9, 400e-6, 0.5e-3),
        Software("deepspeed", "flash2", False, 10, 0, 96 * 2**20, 0.6, 400e-6, 0.5e-3),
        Software("torch", "flash2", False, 14, 0, 96 * 2**20, 0.6, 400e-6, 0.5e-3),
    )
}
"""Programs by name."""
