"""Bytes of each device of a training run, by role.

All functions take tables of layouts and return one figure for each row. Activations are those of
`activations.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.language.training.activations import HALF, in_flight, layer_memory, stream_bytes
from situate.language.training.layout import Floats, Integers, LayoutTable, Run
from situate.language.training.recipes import Recipe
from situate.language.training.software import Software
from situate.language.training.transformer import Transformer

ROLES = (
    *("weights", "gradients", "masters", "moments", "gathered", "activations", "recomputed"),
    *("logits", "workspace", "communication"),
)
"""Roles of bytes on a device."""

NCCL_GROUP = 48 * 2**20
"""Bytes of NCCL's buffers for a group of GPUs (`NCCL_BUFFSIZE` of 4 MiB for each channel)."""

RESERVED = 1.1
"""Bytes that PyTorch's allocator reserves for each byte allocated at the peak."""

MARGIN = 1.08
"""Bytes by those predicted that 99 of 100 published runs stay below, whose features the formulas
have (`benchmarks/layouts/memory.py`, cross-validated by model)."""

SOFTMAX = 4
"""Bytes of a probability of the loss, which its backward pass reads."""

PREFETCHED = 2
"""Layers whose weights FSDP holds gathered at once: one computes, the next arrives."""


@dataclass(frozen=True)
class StageMemory:
    """Bytes of the devices of one stage at their peak, shape (layouts,) each.

    Attributes:
        roles: bytes by role.
    """

    roles: dict[str, Floats]

    @property
    def allocated(self) -> Floats:
        """Bytes of tensors, as `torch.cuda.max_memory_allocated` counts them."""
        outside = ("communication",)
        parts = (size for role, size in self.roles.items() if role not in outside)
        return sum(parts, np.zeros(len(self.roles["weights"])))

    @property
    def reserved(self) -> Floats:
        """Bytes that the device lacks for others: tensors, holes between them, NCCL's buffers."""
        return RESERVED * self.allocated + self.roles["communication"]


def first_rank(table: LayoutTable) -> Integers:
    """(layouts,) the first stage, which has the most micro-batches in flight."""
    return np.zeros(len(table), np.int64)


def last_rank(table: LayoutTable) -> Integers:
    """(layouts,) the stage with the output, which has the logits."""
    return table.last_stage


def stage_memory(model: Transformer, run: Run, table: LayoutTable, rank: Integers) -> StageMemory:
    """Bytes of a stage's devices.

    Args:
        model: the transformer.
        run: the sequence and the recipe; its layout is not read.
        table: layouts.
        rank: (layouts,) the stage, from 0.
    """
    software = run.recipe.software
    roles = _states(model, run.recipe, table, rank)
    tokens = table.micro * run.sequence / table.cp
    roles["activations"], recomputed = _activations(model, run, table, rank)
    logits = logit_bytes(model, software, table, rank, tokens)
    # The peak is at the loss, or later when a layer is computed again and the logits are gone.
    roles["logits"] = np.where(logits >= recomputed, logits, 0.0)
    roles["recomputed"] = np.where(logits >= recomputed, 0.0, recomputed)
    roles["workspace"] = np.full(len(table), float(software.workspace))
    degrees = (table.tp, table.cp, table.dp, table.pp, table.ep)
    groups = sum(((degree > 1).astype(float) for degree in degrees), np.zeros(len(table)))
    roles["communication"] = NCCL_GROUP * groups
    return StageMemory({role: roles[role] for role in ROLES})


def peak_memory(model: Transformer, run: Run, table: LayoutTable) -> StageMemory:
    """Bytes of the fullest stage, which is the first or the last."""
    ends = (first_rank(table), last_rank(table))
    first, last = (stage_memory(model, run, table, rank) for rank in ends)
    fuller = last.allocated > first.allocated
    return StageMemory({r: np.where(fuller, last.roles[r], first.roles[r]) for r in ROLES})


def stage_weights(model: Transformer, table: LayoutTable, rank: Integers) -> tuple[Floats, Floats]:
    """(layouts,) elements of a stage's weights on a device: those outside experts, and experts'."""
    first, last = rank == 0, rank == table.last_stage
    predictors = table.mtp * last
    layers = np.ceil(model.layers / table.pp)
    sparse = np.minimum(layers, model.expert_layers)
    dense = layers - sparse
    # A predictor is one more layer of the last kind.
    sparse = sparse + predictors * (model.expert_layers > 0)
    dense = dense + predictors * (model.expert_layers == 0)
    latent = model.latent * model.hidden
    attention = (sparse + dense) * (model.attention_weights - latent)
    ends = model.embedding_weights * _embeddings(model, table, rank)
    # Tensor parallelism divides matrices; each device of a group has the rest whole.
    divided = attention + dense * model.network_weights + sparse * model.shared_weights + ends
    whole = (sparse + dense) * (model.norm_weights + latent) + sparse * model.router_weights
    whole = whole + first * model.positions * model.hidden
    whole = whole + last * (model.hidden + model.head_weights)
    # The projection of a token's embedding beside the stream, and their normalisations.
    divided = divided + predictors * 2 * model.hidden**2
    whole = whole + predictors * 3 * model.hidden
    count = model.experts.count if model.experts else 0
    experts = sparse * count * model.expert_weights / (table.ep * table.etp)
    return divided / table.tp + whole, experts


def _embeddings(model: Transformer, table: LayoutTable, rank: Integers) -> Floats:
    """(layouts,) matrices of the size of the embedding on a stage.

    The output of another stage than the first is a copy of a tied embedding, and predictors there
    need the embedding itself.
    """
    last = rank == table.last_stage
    output = last & (table.apart | (not model.tied))
    input_copy = last & table.apart & (table.mtp > 0) & (not model.tied)
    count: Floats = (rank == 0).astype(float) + output + input_copy
    return count


def _states(
    model: Transformer, recipe: Recipe, table: LayoutTable, rank: Integers
) -> dict[str, Floats]:
    """Bytes of weights, gradients, masters, moments and gathered weights."""
    weights, experts = stage_weights(model, table, rank)
    ends = model.embedding_weights * _embeddings(model, table, rank) / table.tp
    gathered = _gathered(model, recipe, table, rank)
    return {**state_bytes(model, recipe, table, weights, experts, ends), "gathered": gathered}


def state_bytes(
    model: Transformer,
    recipe: Recipe,
    table: LayoutTable,
    weights: Floats,
    experts: Floats,
    ends: Floats,
) -> dict[str, Floats]:
    """Bytes of a device's weights, gradients, masters and moments.

    Args:
        model: the transformer.
        recipe: bytes of each state.
        table: layouts.
        weights, experts: (layouts,) elements on the device, outside experts and of experts.
        ends: (layouts,) elements of the embedding and the output among `weights`.
    """
    shares = {
        least: (
            np.where(table.zero >= least, table.spread, 1.0),
            np.where(table.zero >= least, np.maximum(table.expert_spread, 1), 1.0),
        )
        for least in (1, 2, 3)
    }

    def total(size: float, least: int) -> Floats:
        """Bytes of a state that ZeRO divides from stage `least` on."""
        spread, expert_spread = shares[least]
        return size * (weights / spread + experts / expert_spread)

    update, (spread, expert_spread) = recipe.optimizer, shares[1]
    moments = total(update.bytes, 1) + (update.end_bytes - update.bytes) * ends / spread
    if update.factored:
        # A row and a column of float32 numbers for each matrix.
        moments = total(8.0 / np.sqrt(model.hidden), 1)
    masters = total(recipe.master, 1)
    if update.whole:
        # One of the replicas has the states of the whole embedding, however few others it has, and
        # its share of the experts, which other replicas divide among themselves.
        embedding = np.minimum(ends, model.embedding_weights / table.tp)
        own = experts / expert_spread
        masters = np.maximum(masters, recipe.master * (embedding + own))
        moments = np.maximum(moments, update.end_bytes * embedding + update.bytes * own)
    device = np.where(table.offload == 1, 0.0, 1.0)
    return {
        "weights": total(recipe.weight, 3),
        "gradients": total(recipe.gradient, 2),
        "masters": device * masters,
        "moments": device * moments,
    }


def _gathered(model: Transformer, recipe: Recipe, table: LayoutTable, rank: Integers) -> Floats:
    """Bytes of whole weights, or casts of them, beside the ones that stay."""
    layer = model.attention_weights / table.tp
    if model.experts is not None:
        count = model.experts.count / (table.ep * table.etp)
        layer = layer + count * model.expert_weights + model.shared_weights / table.tp
    else:
        layer = layer + model.network_weights / table.tp
    first, last = rank == 0, rank == table.last_stage
    end = model.embedding_weights / table.tp * (first | last)
    # The gradients of a layer are whole before they are reduced.
    with_gradients = PREFETCHED * layer * recipe.gathered + layer * recipe.gradient
    end_bytes = end * (recipe.gathered + recipe.gradient * last)
    zero3 = (table.zero == 3) & (table.spread > 1)
    gathered = np.where(zero3, with_gradients + end_bytes, 0.0)
    whole = sum(stage_weights(model, table, rank))
    if recipe.software.stays_gathered:
        # Reduce-scatter reads a copy of a layer's gradients.
        step = (recipe.gathered + recipe.gradient) * whole + recipe.gradient * layer
        gathered = np.where(zero3 & (table.pp > 1), step, gathered)
    if recipe.name == "amp":
        # Autocast keeps the cast weights of all layers to the end of the forward pass.
        gathered = np.where(zero3, gathered, recipe.gathered * whole)
    return gathered


def logit_bytes(
    model: Transformer, software: Software, table: LayoutTable, rank: Integers, tokens: Floats
) -> Floats:
    """Bytes of logits with their copies, which the last stage holds while it computes the loss.

    The softmax of each further prediction waits beside them. ZB-H1 and ZB-H2 hold the logits'
    gradients of `pp - 1` and of `2 (pp - 1)` micro-batches more, for the late gradients of the
    output's matrix; ZB-V computes those at once. The head's product reads the normalised
    stream, gathered with sequence parallelism, and writes its gradient.
    """
    tokens = np.where(rank == table.last_stage, tokens, 0.0)
    width = np.where(table.tp > 1, software.divided_logit_bytes, software.logit_bytes)
    width = width + SOFTMAX * table.mtp
    passes = np.choose(table.schedule, [1, table.pp, 2 * table.pp - 1, 1])
    width = width + HALF * (np.minimum(passes, table.count) - 1)
    gathered = np.where(table.sp == 1, 2.0, 1.0)
    streams = HALF * model.hidden * (2 / table.sequence_split + gathered)
    columns = model.vocabulary / table.tp
    logits: Floats = tokens * (width * columns + streams)
    if software.keeps_outputs:
        outputs = HALF * columns * tokens * table.count * (table.pp > 1)
        # At the end of the step, all outputs exist twice.
        logits = np.maximum(logits + outputs, 2 * outputs)
    return logits


def _activations(
    model: Transformer, run: Run, table: LayoutTable, rank: Integers
) -> tuple[Floats, Floats]:
    """Bytes that the forward pass keeps for the backward pass, and those of a repeated layer."""
    layer, again = layer_memory(model, run, table)
    stream = stream_bytes(model, run, table)
    # A predictor keeps its two inputs and both beside one another.
    predictors = table.mtp * (rank == table.last_stage) * (layer + 4 * stream)
    embedding = (rank == 0) * stream
    return in_flight(model, table, rank) * layer + embedding + predictors, again
