"""What training software does beyond the formulas: its kernels, its peaks, its host time.

Facts of kernels come from the programs' sources. The constants of `Pace` are fits to published
runs (`benchmarks/layouts`), in which each run is predicted by constants of other models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

GIB = 2**30

LOSS_BYTES = 52
"""Bytes of a logit that pass through memory in Megatron-LM's `tensor_parallel/cross_entropy.py`.

To float32 6, maximum 4, difference 8, exponent 8, sum 4, quotient 8, gradient 8, to 16 bits 6.
"""

EXPERT_WAIT = 0.25e-3
"""Seconds in which a GPU waits for the host, for each of its experts in both directions of a layer.

All-to-all of Megatron-LM reads the numbers of tokens on the host (`cuda_sync_point` of
`transformer/moe/token_dispatcher.py`), so that no kernel is in the queue behind it. Then the host
launches the kernels of one expert after the other (Transformer Engine's `GroupedLinear`). Fits that
leave out one model give 0.18 to 0.29 ms.
"""

Attention = Literal["flash", "flash2", "scores"]
"""Kernels of attention: that of the GPU's generation (cuDNN, FlashAttention-3), FlashAttention-2,
or matrix products with scores in memory."""

PARTS = (
    *("matrices", "grouped", "attention", "memory", "launches", "tensor", "context", "experts"),
    *("head", "pipeline", "data", "update", "host"),
)
"""Parts of a step's seconds."""


@dataclass(frozen=True)
class Pace:
    """Factors by which the parts of a step differ from the formulas.

    Attributes:
        factors: by part; 1 where missing.
        error, large_error: relative errors of predicted seconds that half and nine tenths of
            published runs are within, cross-validated; guesses for programs without such runs.
    """

    factors: dict[str, float] = field(default_factory=dict)
    error: float = 0.25
    large_error: float = 0.5


@dataclass(frozen=True)
class Software:
    """A program that trains.

    Attributes:
        name: in tables.
        attention: the kernel of its attention.
        dropout: masks of dropout are stored.
        result_copies: copies of attention's result that the backward pass needs.
        repeated_parts: parts of a layer's activations that selective recompute repeats.
        offloaded: parts of a layer's activations that wait in host memory for its backward pass.
        logit_bytes: bytes for each logit at the peak: in the type of the weights, their copies in
            float32, and their gradients.
        divided_logit_bytes: the same if tensor parallelism divides them.
        loss_bytes: that go through memory for each logit, forwards and backwards.
        selective: share of a layer's saved activations that selective recompute keeps, or 0 if it
            repeats the core of attention alone.
        repeated: share of a layer's matrix products that selective recompute repeats.
        workspace: bytes of cuBLAS and other libraries beside all tensors.
        overlap: share of the time of gradients' collectives that the backward pass hides.
        hidden: share of the collectives of tensor and expert parallelism that products hide.
        layer_launch: seconds in which the host launches the forward pass of a layer.
        expert_launch: further seconds of a layer with experts.
        expert_wait: seconds for each expert of a device in a layer, both directions, in which the
            GPU waits for the host.
        sends_copies: tokens go to each of their experts; else once to each node and GPU.
        collective_launch: seconds of a collective of tensor parallelism.
        softmax_launch: further seconds of a layer whose scores have no kernel of softmax.
        end_launch: seconds of a micro-batch outside layers.
        expert_passes: times that the forward pass reads or writes a token's copy for an expert.
        stays_gathered: with a pipeline, ZeRO-3 keeps weights and gradients whole for the step.
        zero_bubble: its interleaved pipelines have a zero-bubble schedule.
        experts_in_shards: the devices of the experts are among those of one replica and those that
            divide all states (ZeRO-3).
        keeps_outputs: pipelines keep the logits of all micro-batches, to join them after the step.
        predicts: it trains layers that predict further tokens.
        fused_softmax: softmax over scores is one kernel; else its float32 result stays.
        pace: the factors of its parts.
    """

    name: str
    attention: Attention = "flash2"
    dropout: bool = False
    result_copies: int = 1
    repeated_parts: tuple[str, ...] = ("scores",)
    offloaded: tuple[str, ...] = ()
    logit_bytes: float = 14
    divided_logit_bytes: float = 14
    loss_bytes: float = 28
    selective: float = 0.0
    repeated: float = 0.0
    workspace: int = 96 * 2**20
    overlap: float = 0.6
    hidden: float = 0.0
    layer_launch: float = 400e-6
    expert_launch: float = 0.5e-3
    expert_wait: float = 0.0
    sends_copies: bool = True
    collective_launch: float = 50e-6
    softmax_launch: float = 0.0
    end_launch: float = 0.0
    expert_passes: float = 4.0
    stays_gathered: bool = False
    zero_bubble: bool = False
    experts_in_shards: bool = False
    keeps_outputs: bool = False
    predicts: bool = False
    fused_softmax: bool = True
    pace: Pace = Pace()

    @property
    def score_bytes(self) -> int:
        """Bytes of a score that attention without a kernel of its own stores.

        Softmax; with dropout its mask and its result; a float32 copy if nothing fuses it.
        """
        return 2 + 3 * self.dropout + 2 * (not self.fused_softmax)


SOFTWARE = {
    software.name: software
    for software in (
        # Megatron-LM keeps bfloat16 logits, and turns a float32 copy into softmax and gradient in
        # place (`tensor_parallel/cross_entropy.py`).
        Software(
            "megatron",
            "flash",
            logit_bytes=6,
            divided_logit_bytes=6,
            loss_bytes=LOSS_BYTES,
            overlap=0.7,
            hidden=0.4,
            layer_launch=250e-6,
            expert_launch=0.3e-3,
            expert_wait=EXPERT_WAIT,
            predicts=True,
            pace=Pace({}, 0.06, 0.27),
        ),
        # torchtitan compiles its loss, but not that of logits divided by DTensor. Of every second
        # matrix product selective recompute keeps the result.
        Software(
            "torchtitan",
            logit_bytes=12,
            divided_logit_bytes=18,
            loss_bytes=24,
            selective=0.38,
            repeated=0.37,
            overlap=0.9,
            layer_launch=250e-6,
            expert_launch=0.3e-3,
            stays_gathered=True,
            zero_bubble=True,
            # `ParallelDims` of `torchtitan/distributed/parallel_dims.py`.
            experts_in_shards=True,
            pace=Pace({}, 0.104, 0.182),
        ),
        # llm-foundry's trainer, Composer, with FSDP of PyTorch 1.
        Software(
            "composer",
            logit_bytes=10,
            loss_bytes=20,
            overlap=0.9,
            pace=Pace({"matrices": 1.1, "attention": 1.22}, 0.06, 0.16),
        ),
        Software("deepspeed"),
        Software("torch"),
    )
}
"""Programs by name."""
