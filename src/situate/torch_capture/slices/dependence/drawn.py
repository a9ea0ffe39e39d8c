"""Operators that draw random numbers."""

from __future__ import annotations

from typing import Any

from situate.torch_capture.slices.dependence.operator_call import Call, Relations
from situate.torch_capture.slices.dependence.relation import (
    UNKNOWN,
    Reason,
    Relation,
    Unrelated,
    by_sample,
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
    sources = call.inputs
    if any(source.kind not in ("shared", "by_sample") for source in sources):
        raise Unrelated(Reason.LOSS)
    batches = {(s.axis, s.blocks) for s in sources if s.kind == "by_sample" and not s.uniform}
    if len(batches) > 1:
        raise Unrelated(Reason.PAIRS)
    return tuple(_result(call, k, batches) for k in range(len(call.shapes)))


def _result(call: Call, k: int, batches: set[tuple[int, int]]) -> Relation:
    if len(call.growing[k]) != 1:
        raise Unrelated(Reason.PAIRS if call.growing[k] else Reason.DRAWN)
    [axis] = call.growing[k]
    blocks = next((blocks for own, blocks in batches if own == axis), 1)
    power = call.inputs[0].power if call.name in DROPOUTS and k == 0 and call.inputs else 0
    return call.check_grows(by_sample(axis, power, blocks), k)
