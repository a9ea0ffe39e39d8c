"""Bytes of the activations that a stage's layers keep for their backward passes.

They follow Korthikanti et al. (arXiv:2205.05198, sections 4 and 5), with gated networks, grouped
queries, latent attention (arXiv:2405.04434), flash attention (arXiv:2205.14135) and experts added.
All functions take tables of layouts and return one figure for each row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situate.language.training.layout import Floats, Integers, LayoutTable, Run, V
from situate.language.training.software import Software
from situate.language.training.transformer import Transformer

HALF = 2
"""Bytes of an activation in mixed precision."""

FULL = 2
"""Number of full recomputation in a table."""

PARTS = (
    *("streams", "normed", "latents", "heads", "results", "scores"),
    *("network", "shared", "copies", "routed", "experts", "products"),
)
"""Parts of a layer's activations: the inputs of its normalisations and their results; compressed
queries, keys and values; queries, keys and values of all heads; results of attention and its
scores; results of the matrices of the dense network and of shared experts; tokens on their way to
experts and back, and as their inputs; results of the experts' first matrices, and their products.
"""

COPIES = 4
"""Copies of a token on its way to an expert and back that the backward pass needs."""


def in_flight(model: Transformer, table: LayoutTable, rank: Integers) -> Floats:
    """(layouts,) layers' worth of micro-batches that a stage holds at once.

    1F1B holds one for each later stage and one more. Interleaved 1F1B (arXiv:2104.04473,
    section 2.2) holds `2 (pp - rank - 1) + (vp - 1) group + 1` chunks, each of
    `layers / (pp * vp)` layers. ZB-H1 runs gradients of weights `rank` passes late
    and warms up by one pass for each later stage (`ScheduleInterleavedZeroBubble` of PyTorch), so
    that every stage holds `(vp - 1) group + pp` chunks. ZB-H2 runs twice as many early and late,
    and holds `2 pp - 1`; ZB-V holds `2 pp` chunks of half the size.
    """
    pp, vp, count = table.pp, table.vp, table.count
    held = np.choose(table.schedule, [pp - rank, pp, 2 * pp - 1, pp])
    single = np.minimum(held, count) * np.ceil(model.layers / pp)
    warm = np.where(table.late, pp, 2 * (pp - rank - 1) + 1) + (vp - 1) * table.group
    chunks = np.minimum(np.where(table.schedule == V, vp * pp, warm), count * vp)
    layers: Floats = np.where(vp > 1, chunks * model.layers / (pp * vp), single)
    return layers


def layer_memory(model: Transformer, run: Run, table: LayoutTable) -> tuple[Floats, Floats]:
    """(layouts,) bytes that a layer keeps of a micro-batch for its backward pass, and those that
    the backward pass computes again."""
    software = run.recipe.software
    parts = layer_parts(model, run, table)
    whole = _sum(parts, tuple(parts))
    resident = whole - _sum(parts, software.offloaded)
    start = HALF * model.hidden / table.sequence_split
    repeated = tuple(part for part in software.repeated_parts if part not in software.offloaded)
    selective = resident - _sum(parts, repeated)
    if software.selective:
        selective = start + software.selective * (whole - _sum(parts, ("scores",)) - start)
    # In the order of `RECOMPUTE`: none, selective, full, modules.
    resident_by_recompute = [
        resident,
        selective,
        np.broadcast_to(start, len(table)),
        resident - _module_bytes(model, parts),
    ]
    layer = np.choose(table.recompute, resident_by_recompute)
    # The layer whose backward pass runs has its activations whole, and gradients of its scores.
    # Meanwhile what the next layer has in host memory arrives.
    again = whole - layer + _score_gradients(parts, software) + _sum(parts, software.offloaded)
    scale = _scale(run, table)
    return scale * layer, scale * again


def _module_bytes(model: Transformer, parts: dict[str, Floats]) -> Floats:
    """(layouts,) bytes of a token that Megatron-LM's modules compute again: results of
    normalisations, products of experts, and all heads of latent attention."""
    heads = parts["heads"] if model.latent else 0.0 * parts["heads"]
    share: Floats = repeated_norms(model) / 2 * parts["normed"] + parts["products"] + heads
    return share


def repeated_norms(model: Transformer) -> float:
    """Normalisations of a layer, in the mean, that Megatron-LM can repeat.

    Those before dense matrices are part of the matrices' kernels: before queries, keys and values
    without latent attention, and before a dense network.
    """
    return float(model.latent > 0) + model.expert_layers / model.layers


def _sum(parts: dict[str, Floats], names: Sequence[str]) -> Floats:
    return sum((parts[name] for name in names), np.zeros_like(parts["streams"]))


def _score_gradients(parts: dict[str, Floats], software: Software) -> Floats:
    """(layouts,) bytes of a token's gradients of scores, before and after dropout."""
    if software.attention != "scores":
        return np.zeros_like(parts["scores"])
    copies = 2 if software.dropout else 1
    return parts["scores"] * HALF * copies / software.score_bytes


def stream_bytes(model: Transformer, run: Run, table: LayoutTable) -> Floats:
    """(layouts,) bytes of a micro-batch between layers, on one device."""
    return _scale(run, table) * HALF * model.hidden / table.sequence_split


def _scale(run: Run, table: LayoutTable) -> Floats:
    """(layouts,) tokens of a micro-batch on a device, twice in float32."""
    width = 4.0 if run.recipe.precision in ("fp32", "tf32") else HALF
    tokens: Floats = table.micro * run.sequence / table.cp
    return tokens * (width / HALF)


def layer_bytes(model: Transformer, run: Run, table: LayoutTable) -> Floats:
    """(layouts,) bytes of a token that a layer stores, without the core of attention."""
    parts = layer_parts(model, run, table)
    return _sum(parts, [part for part in parts if part != "scores"])


def layer_parts(model: Transformer, run: Run, table: LayoutTable) -> dict[str, Floats]:
    """(layouts,) bytes of a token that a layer stores, by part of `PARTS`."""
    software, tp, split = run.recipe.software, table.tp, table.sequence_split
    # A byte an element for each of two dropouts.
    masks = 2 * model.hidden if software.dropout else 0
    joint = model.heads * model.head + model.kv_heads * (model.head + model.value_head)
    values = model.heads * model.value_head
    parts = _network_parts(model, table) | {
        "streams": (2 * HALF * model.hidden + masks) / split,
        "normed": 2 * HALF * model.hidden / split,
        "latents": 2 * HALF * model.latent / split,
        "heads": HALF * joint / tp,
        "results": HALF * software.result_copies * values / tp,
        "scores": _core_bytes(model, run, table),
    }
    return {part: np.broadcast_to(parts[part], len(table)).astype(float) for part in PARTS}


def _network_parts(model: Transformer, table: LayoutTable) -> dict[str, Floats]:
    """(layouts,) bytes of a token in the feed-forward networks, in the mean over layers."""
    # The gate and the first matrix, and their product.
    width = 3 if model.gated else 2
    dense = width * HALF * model.ffn / table.tp
    zero = np.zeros(len(table))
    if model.experts is None:
        return dict.fromkeys(PARTS, zero) | {"network": dense}
    mixture = model.experts
    share = model.expert_layers / model.layers
    routed = share * mixture.used / _token_split(table)
    return {
        "network": (1 - share) * dense,
        "shared": share * width * HALF * mixture.shared_width / table.tp,
        # Each expert's copies of the token beside the results of its matrices.
        "copies": routed * (COPIES - 1) * HALF * model.hidden,
        "routed": routed * HALF * model.hidden,
        "experts": routed * (width - 1) * HALF * mixture.width / table.etp,
        "products": routed * HALF * mixture.width / table.etp,
    }


def _token_split(table: LayoutTable) -> Floats:
    """Devices of a tensor-parallel group among which tokens for experts are divided."""
    return np.where((table.sp == 1) & (table.etp < table.tp), table.tp / table.etp, 1.0)


def _core_bytes(model: Transformer, run: Run, table: LayoutTable) -> Floats:
    """(layouts,) bytes of a token for attention's core: statistics of rows, or scores."""
    software = run.recipe.software
    if software.attention != "scores":
        return 4.0 * model.heads / table.tp
    return software.score_bytes * model.heads * run.sequence / table.tp
