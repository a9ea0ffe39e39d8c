"""Bytes of each device of a training run, by role.

Activations follow Korthikanti et al. (arXiv:2205.05198, sections 4 and 5), with gated networks,
grouped queries, flash attention (arXiv:2205.14135) and experts added. All functions take tables of
layouts and return one figure for each row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.language.training.layout import Floats, Integers, LayoutTable, Run
from situate.language.training.recipes import Recipe
from situate.language.training.software import Software
from situate.language.training.transformer import Transformer

ROLES = (
    *("weights", "gradients", "masters", "moments", "gathered", "activations", "recomputed"),
    *("logits", "workspace", "communication"),
)
"""Roles of bytes on a device."""

HALF = 2
"""Bytes of an activation in mixed precision."""

FULL = 2
"""Number of full recomputation in a table."""

NCCL_GROUP = 48 * 2**20
"""Bytes of NCCL's buffers for a group of GPUs (`NCCL_BUFFSIZE` of 4 MiB for each channel)."""

RESERVED = 1.1
"""Bytes that PyTorch's allocator reserves for each byte allocated at the peak."""

MARGIN = 1.19
"""Bytes by those predicted that 99 of 100 published runs stay below, whose features the formulas
have (`benchmarks/layouts/memory.py`, cross-validated by model)."""

COPIES = 4
"""Copies of a token on its way to an expert and back that the backward pass needs."""

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
    """(layouts,) the last stage, which has the logits."""
    return table.pp - 1


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
    layers = np.ceil(model.layers / table.pp)
    sparse = np.minimum(layers, model.expert_layers)
    dense = layers - sparse
    first, last = rank == 0, rank == table.pp - 1
    # A tied output has a copy of the embedding on the last stage.
    output = last & ((table.pp > 1) | (not model.tied))
    ends = model.embedding_weights * (first.astype(float) + output)
    shared = sparse * model.shared_weights
    divided = layers * model.attention_weights + dense * model.network_weights + shared + ends
    whole = layers * model.norm_weights + sparse * model.router_weights
    whole = whole + first * model.positions * model.hidden + last * model.hidden
    count = model.experts.count if model.experts else 0
    experts = sparse * count * model.expert_weights / (table.ep * table.etp)
    return divided / table.tp + whole, experts


def _states(
    model: Transformer, recipe: Recipe, table: LayoutTable, rank: Integers
) -> dict[str, Floats]:
    """Bytes of weights, gradients, masters, moments and gathered weights."""
    weights, experts = stage_weights(model, table, rank)
    gathered = _gathered(model, recipe, table, rank)
    return {**state_bytes(model, recipe, table, weights, experts), "gathered": gathered}


def state_bytes(
    model: Transformer, recipe: Recipe, table: LayoutTable, weights: Floats, experts: Floats
) -> dict[str, Floats]:
    """Bytes of a device's weights, gradients, masters and moments.

    Args:
        model: the transformer.
        recipe: bytes of each state.
        table: layouts.
        weights, experts: (layouts,) elements on the device, outside experts and of experts.
    """
    zero, spread = table.zero, table.spread

    def total(size: float, least: int) -> Floats:
        """Bytes of a state that ZeRO divides from stage `least` on."""
        divided = zero >= least
        return size * (
            weights / np.where(divided, spread, 1)
            + experts / np.where(divided, np.maximum(table.expert_spread, 1), 1)
        )

    moments = total(recipe.optimizer.bytes, 1)
    if recipe.optimizer.factored:
        # A row and a column of float32 numbers for each matrix.
        moments = total(8.0 / np.sqrt(model.hidden), 1)
    device = np.where(table.offload == 1, 0.0, 1.0)
    return {
        "weights": total(recipe.weight, 3),
        "gradients": total(recipe.gradient, 2),
        "masters": device * total(recipe.master, 1),
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
    first, last = rank == 0, rank == table.pp - 1
    end = model.embedding_weights / table.tp * (first | last)
    # The gradients of a layer are whole before they are reduced.
    with_gradients = PREFETCHED * layer * recipe.gathered + layer * recipe.gradient
    end_bytes = end * (recipe.gathered + recipe.gradient * last)
    zero3 = (table.zero == 3) & (table.spread > 1)
    gathered = np.where(zero3, with_gradients + end_bytes, 0.0)
    whole = sum(stage_weights(model, table, rank))
    if recipe.software.stays_gathered:
        step = (recipe.gathered + recipe.gradient) * whole
        gathered = np.where(zero3 & (table.pp > 1), step, gathered)
    if recipe.name == "amp":
        # Autocast keeps the cast weights of all layers to the end of the forward pass.
        gathered = np.where(zero3, gathered, recipe.gathered * whole)
    return gathered


def logit_bytes(
    model: Transformer, software: Software, table: LayoutTable, rank: Integers, tokens: Floats
) -> Floats:
    """Bytes of logits with their copies, which the last stage holds while it computes the loss.

    A zero-bubble pipeline holds the logits' gradients of `pp - 1` micro-batches more, for the late
    gradients of the output's matrix.
    """
    tokens = np.where(rank == table.pp - 1, tokens, 0.0)
    width = np.where(table.tp > 1, software.divided_logit_bytes, software.logit_bytes)
    late = np.minimum(table.pp, table.count) - 1
    width = width + HALF * np.where(table.zero_bubble == 1, late, 0)
    logits: Floats = width * tokens * model.vocabulary / table.tp
    return logits


def in_flight(model: Transformer, table: LayoutTable, rank: Integers) -> Floats:
    """(layouts,) layers' worth of micro-batches that a stage holds at once.

    1F1B holds one for each later stage and one more. Interleaved 1F1B (arXiv:2104.04473,
    section 2.2) holds `2 (pp - rank - 1) + (vp - 1) group + 1` chunks, each of
    `layers / (pp * vp)` layers. A zero-bubble pipeline runs gradients of weights `rank` passes late
    and warms up by one pass for each later stage (`ScheduleInterleavedZeroBubble` of PyTorch), so
    that every stage holds `(vp - 1) group + pp` chunks.
    """
    pp, vp, count = table.pp, table.vp, table.count
    is_late = table.zero_bubble == 1
    single = np.minimum(np.where(is_late, pp, pp - rank), count) * np.ceil(model.layers / pp)
    warm = np.where(is_late, pp, 2 * (pp - rank - 1) + 1)
    chunks = np.minimum(warm + (vp - 1) * table.group, count * vp)
    layers: Floats = np.where(vp > 1, chunks * model.layers / (pp * vp), single)
    return layers


def _activations(
    model: Transformer, run: Run, table: LayoutTable, rank: Integers
) -> tuple[Floats, Floats]:
    """Bytes that the forward pass keeps for the backward pass, and those of a repeated layer."""
    layer, again = layer_memory(model, run, table)
    embedding = (rank == 0) * stream_bytes(model, run, table)
    return in_flight(model, table, rank) * layer + embedding, again


def layer_memory(model: Transformer, run: Run, table: LayoutTable) -> tuple[Floats, Floats]:
    """(layouts,) bytes that a layer keeps of a micro-batch for its backward pass, and those that
    the backward pass computes again."""
    software = run.recipe.software
    stored = layer_bytes(model, table, software)
    core = _core_bytes(model, run, table, software)
    start = HALF * model.hidden / table.sequence_split
    sizes = [stored + core, stored, start]
    if software.selective:
        sizes[1] = start + software.selective * (stored - start)
    layer = np.choose(table.recompute, [np.broadcast_to(size, len(table)) for size in sizes])
    # The layer whose backward pass runs has its activations whole.
    again = np.where(table.recompute == FULL, stored + core - start, 0.0)
    again += np.where(table.recompute == 1, stored + core - sizes[1], 0.0)
    scale = _scale(run, table)
    return scale * layer, scale * again


def stream_bytes(model: Transformer, run: Run, table: LayoutTable) -> Floats:
    """(layouts,) bytes of a micro-batch between layers, on one device."""
    return _scale(run, table) * HALF * model.hidden / table.sequence_split


def _scale(run: Run, table: LayoutTable) -> Floats:
    """(layouts,) tokens of a micro-batch on a device, twice in float32."""
    width = 4.0 if run.recipe.precision in ("fp32", "tf32") else HALF
    tokens: Floats = table.micro * run.sequence / table.cp
    return tokens * (width / HALF)


def layer_bytes(model: Transformer, table: LayoutTable, software: Software) -> Floats:
    """(layouts,) bytes of a token that a layer stores, without the core of attention.

    The inputs of two normalisations and their results, queries, keys and values, the result of
    attention, and the results of the network's matrices.
    """
    tp, split = table.tp, table.sequence_split
    masks = 2 * model.hidden if software.dropout else 0
    between = (4 * HALF * model.hidden + masks) / split
    joint = model.heads * model.head + model.kv_heads * (model.head + model.value_head)
    attention = HALF * (joint + model.heads * model.value_head) / tp
    # The gate and the first matrix, and their product.
    width = 3 if model.gated else 2
    network = width * HALF * model.ffn / tp
    if model.experts is None:
        return between + attention + network
    mixture = model.experts
    # Each expert's copy of the token beside the results of its matrices.
    copy = HALF * model.hidden * COPIES
    routed = mixture.used * (copy + width * HALF * mixture.width / table.etp) / _token_split(table)
    shared = width * HALF * mixture.shared_width / tp
    share = model.expert_layers / model.layers
    return between + attention + share * (routed + shared) + (1 - share) * network


def _token_split(table: LayoutTable) -> Floats:
    """Devices of a tensor-parallel group among which tokens for experts are divided."""
    return np.where((table.sp == 1) & (table.etp < table.tp), table.tp / table.etp, 1.0)


def _core_bytes(model: Transformer, run: Run, table: LayoutTable, software: Software) -> Floats:
    """(layouts,) bytes of a token for attention's core: statistics of rows, or scores."""
    if software.attention != "scores":
        return 4.0 * model.heads / table.tp
    # Softmax, and with dropout its mask and its result.
    score_bytes = 5 if software.dropout else 2
    return score_bytes * model.heads * run.sequence / table.tp
