"""Batch normalisation, which takes its statistics over the samples if it trains."""

from __future__ import annotations

from typing import Any

from situate.torch_capture.slices.dependence.operator_call import Call, Relations
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    Reason,
    Relation,
    Unrelated,
    reduced,
)

BATCH_NORMS = frozenset(
    {"native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional"}
    | {"_batch_norm_with_update", "_batch_norm_with_update_functional", "cudnn_batch_norm"}
    | {"_native_batch_norm_legit_no_training", "_batch_norm_no_update"}
)

GRADIENTS = frozenset(
    {"native_batch_norm_backward", "cudnn_batch_norm_backward", "batch_norm_backward"}
)

CHANNEL = 1
"""The dimension of channels, each of which has its own statistics."""


def batch_norm(call: Call, over_batch: bool) -> Relations:
    """The relation of a batch norm, or of its gradient.

    Args:
        call: of the norm.
        over_batch: it takes its statistics over all slices.
    """
    source = call.relation(call.arguments["grad_out" if call.name in GRADIENTS else "input"])
    if source.kind != "by_sample":
        raise Unrelated(Reason.STATISTICS if trains(call.name, call.arguments) else Reason.LOSS)
    _check_parameters(call, source)
    results = tuple(_result(call, k, source) for k in range(len(call.shapes)))
    if source.axis == CHANNEL or over_batch or not trains(call.name, call.arguments):
        return results
    # The relations hold up to the statistics, so later ops are analysed with them.
    raise Unrelated(Reason.STATISTICS, results)


def _check_parameters(call: Call, source: Relation) -> None:
    """Refuse weights and running statistics that depend on other samples than their channel's."""
    for name in ("weight", "bias", "running_mean", "running_var"):
        relation = call.operand(name)
        if relation is None or (relation.kind == "shared" and not relation.power):
            continue
        # Channels that are samples, as of an instance norm, have weights of their own.
        own = relation.kind == "by_sample" and relation.blocks == source.blocks
        if not own or relation.power or source.axis != CHANNEL:
            raise Unrelated(Reason.TOGETHER)


def trains(name: str, arguments: dict[str, Any]) -> bool:
    """True for a norm, or its gradient, that takes statistics of its input."""
    default = name not in ("_native_batch_norm_legit_no_training", "_batch_norm_no_update")
    return bool(arguments.get("training", arguments.get("train", default)))


def _result(call: Call, k: int, source: Relation) -> Relation:
    is_gradient = call.name in GRADIENTS
    if source.power not in (0, None) and not is_gradient:
        raise Unrelated(Reason.NUMBER)
    if (k == 0 or source.axis == CHANNEL) and call.growing[k] != ():
        # Statistics of channels that are samples lie along their only dimension.
        axis = source.axis if k == 0 else 0
        power = source.power if is_gradient else 0
        return call.check_grows(Relation("by_sample", power, axis, source.blocks), k)
    return reduced(source.power) if is_gradient else SHARED
