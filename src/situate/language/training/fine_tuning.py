"""Does a training run fit on one GPU, and which changes would make it fit?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from situate.errors import SituateError, nearest
from situate.files.contents import one_line
from situate.language.training.layout import Layout, LayoutTable, Run
from situate.language.training.layout_text import DEGREES
from situate.language.training.memory import MARGIN, RESERVED, last_rank, stage_memory
from situate.language.training.recipes import OPTIMIZERS, Recipe, find_recipe
from situate.language.training.transformer import Transformer

FROZEN_BYTES: dict[str, float] = {"16-bit": 2.0, "8-bit": 1.03, "4-bit": 0.52}
"""Bytes of a frozen weight; 4-bit ones have two levels of scales (QLoRA, arXiv:2305.14314)."""

ADAPTER_STATES = 8
"""Bytes of an adapter's float32 weight and gradient, beside its moments."""

CONTEXT = 0.6 * 2**30
"""Bytes of the CUDA context."""

LOGIT_BYTES = {"eager": 14.0, "fused": 0.2}
"""Bytes for each logit: copies in float32, or the chunks of a fused cross entropy (Liger)."""

RANK = 16
"""Rank of the adapters that are proposed."""

LIMITS = {"batch": DEGREES["micro"], "seq": DEGREES["seq"], "lora": 2**16}
"""Largest sizes by their option."""


@dataclass(frozen=True)
class TuningRun:
    """A training run on one GPU.

    Attributes:
        batch: samples of a micro-batch.
        sequence: tokens of a sample.
        optimizer: a name of `OPTIMIZERS`.
        rank: of adapters (LoRA, arXiv:2106.09685); 0 trains all weights.
        weights: type of frozen weights.
        checkpointing: layers are computed again in the backward pass.
        fused_loss: cross entropy stores no logits of all tokens.
        recipe: of the states, if all weights are trained.
    """

    batch: int = 1
    sequence: int = 2048
    optimizer: str = "adamw"
    rank: int = 0
    weights: str = "16-bit"
    checkpointing: bool = False
    fused_loss: bool = False
    recipe: str = "amp"

    def check(self) -> None:
        """
        Raises:
            SituateError: choices exclude one another, or a size is absurd.
        """
        sizes = {"batch": self.batch, "seq": self.sequence, "lora": self.rank}
        for option, size in sizes.items():
            if size > LIMITS[option]:
                raise SituateError(f"--{option}: must be at most {LIMITS[option]:,}, got {size:,}")
        if self.weights not in FROZEN_BYTES:
            hint = nearest(self.weights, FROZEN_BYTES)
            raise SituateError(one_line(f"--weights {self.weights[:40]!r}{hint}"))
        if self.weights != "16-bit" and not self.rank:
            raise SituateError(f"--weights {self.weights}: cannot be trained: give --lora too")
        find_recipe(self.recipe, None, self.optimizer)


@dataclass(frozen=True)
class Change:
    """A change of a run with its memory.

    Attributes:
        name: what changes.
        run: the run with it.
        bytes: predicted.
        high: bytes that 99 of 100 runs stay below.
    """

    name: str
    run: TuningRun
    bytes: float
    high: float


def tuning_memory(model: Transformer, run: TuningRun) -> dict[str, float]:
    """Bytes of a run by role, as a GPU needs them.

    Raises:
        SituateError: choices exclude one another.
    """
    run.check()
    recipe = _recipe(run)
    layout = Layout(micro=run.batch, recompute="full" if run.checkpointing else "none")
    table = LayoutTable.of([layout])
    memory = stage_memory(model, Run(layout, run.sequence, recipe), table, last_rank(table))
    roles = {role: float(size[0]) for role, size in memory.roles.items()}
    if run.rank:
        states = ADAPTER_STATES + OPTIMIZERS[run.optimizer].bytes
        roles["adapters"] = states * adapter_weights(model, run.rank)
        if run.weights != "16-bit":
            # The matrix that is multiplied has 16 bits.
            widest = max(model.network_weights, model.expert_weights) / model.matrices
            roles["gathered"] = 2.0 * widest
            # Embedding and output stay in 16 bits.
            ends = model.embedding_weights * (1 if model.tied else 2)
            roles["weights"] += (2 - FROZEN_BYTES[run.weights]) * ends
    allocated = sum(roles.values())
    return roles | {"fragmentation": (RESERVED - 1) * allocated, "context": CONTEXT}


def _recipe(run: TuningRun) -> Recipe:
    """The states of the weights, without adapters."""
    recipe = find_recipe(run.recipe, None, run.optimizer)
    logits = LOGIT_BYTES["fused" if run.fused_loss else "eager"]
    recipe = replace(recipe, software=replace(recipe.software, logit_bytes=logits))
    if run.rank:
        frozen = FROZEN_BYTES[run.weights]
        optimizer = OPTIMIZERS["sgd"]
        recipe = replace(
            recipe, name="lora", weight=frozen, gradient=0, master=0, optimizer=optimizer
        )
    return recipe


def adapter_weights(model: Transformer, rank: int) -> int:
    """Elements of adapters at all matrices of attention and of feed-forward networks."""
    # Beside an (a, b) matrix, an adapter of rank r has r (a + b) elements.
    joint = (model.heads + 2 * model.kv_heads) * model.head
    attention = 4 * model.hidden + joint + model.heads * model.value_head
    network = model.matrices * (model.hidden + model.ffn)
    if model.experts is not None:
        expert = model.matrices * (model.hidden + model.experts.width)
        network = model.experts.count * expert
    return model.layers * rank * (attention + network)


def changes(model: Transformer, run: TuningRun) -> list[Change]:
    """Single changes and growing combinations of them, the least intrusive first."""
    result: list[Change] = []
    for name, changed in (*_single(run), *_combined(run)):
        if changed not in (run, *(row.run for row in result)):
            roles = tuning_memory(model, changed)
            result.append(Change(name, changed, sum(roles.values()), high_bytes(roles)))
    return result


def high_bytes(roles: Mapping[str, float]) -> float:
    """Bytes by role that 99 of 100 runs stay below; the CUDA context is as large in all."""
    return MARGIN * (sum(roles.values()) - CONTEXT) + CONTEXT


def total(model: Transformer, run: TuningRun) -> float:
    """Bytes of a run."""
    return sum(tuning_memory(model, run).values())


def _single(run: TuningRun) -> Iterator[tuple[str, TuningRun]]:
    yield "fused cross entropy", replace(run, fused_loss=True)
    yield "gradient checkpointing", replace(run, checkpointing=True)
    yield "8-bit Adam", replace(run, optimizer="adamw8bit")
    if not run.rank:
        yield "all states in bfloat16", replace(run, recipe="pure", optimizer="adamw-bf16")
    if run.batch > 1:
        yield "batch 1, gradients accumulated", replace(run, batch=1)
    if run.sequence > 512:
        yield f"half the sequence, {run.sequence // 2}", replace(run, sequence=run.sequence // 2)
    rank = run.rank or RANK
    yield f"LoRA of rank {rank}", replace(run, rank=rank)
    yield "LoRA on 4-bit weights", replace(run, rank=rank, weights="4-bit")


def _combined(run: TuningRun) -> Iterator[tuple[str, TuningRun]]:
    least = replace(run, checkpointing=True, fused_loss=True, batch=1)
    yield "checkpointing, fused cross entropy, batch 1", least
    if not run.rank:
        pure = replace(least, recipe="pure", optimizer="adamw8bit")
        yield "the same with bfloat16 states and 8-bit Adam", pure
    rank = run.rank or RANK
    yield "the same with LoRA", replace(least, rank=rank)
    yield "the same with LoRA on 4-bit weights", replace(least, rank=rank, weights="4-bit")
