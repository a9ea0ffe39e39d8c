"""Operators that draw random numbers."""

from __future__ import annotations

from typing import Any

from situate.torch_capture.slices.dependence.operator_call import Call, Relations
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    UNKNOWN,
    Reason,
    Relation,
    Unrelated,
    by_sample,
    common,
)

ATTENTION = "scaled_dot_product"
"""In the names of operators that may drop numbers, by a rate among their arguments."""

DROPOUTS = frozenset({"native_dropout", "_fused_dropout", "alpha_dropout", "dropout"})


def draws(call: Call) -> bool:
    """True for an operator that draws."""
    import torch

    tags: Any = getattr(call.node.target, "tags", ())
    if ATTENTION in call.name or "attention" in call.name:
        return False
    return torch.Tag.nondeterministic_seeded in tags


def drawn(call: Call) -> Relations:
    """The relation of random numbers: by sample where each sample has its own."""
    if call.name == "randperm":
        if call.growing[0] == ():
            raise Unrelated(Reason.DRAWN)
        return UNKNOWN
    scales = call.name in DROPOUTS
    if any(source.power for source in call.inputs[scales:]):
        raise Unrelated(Reason.NUMBER)
    batch = common(call.inputs, otherwise=SHARED)
    power = call.inputs[0].power if scales else 0
    results = range(len(call.shapes))
    return tuple(_result(call, k, batch, power if k == 0 else 0) for k in results)


def _result(call: Call, k: int, batch: Relation, power: int | None) -> Relation:
    if len(call.growing[k]) != 1:
        raise Unrelated(Reason.PAIRS if call.growing[k] else Reason.DRAWN)
    [axis] = call.growing[k]
    blocks = batch.blocks if batch.kind == "by_sample" else 1
    return call.check_grows(by_sample(axis, power, blocks), k)
