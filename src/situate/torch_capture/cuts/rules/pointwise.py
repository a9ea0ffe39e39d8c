"""Letters of ops that compute every entry from the entries at the same place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from situate.torch_capture.cuts.letters import Axis, Letter, operands, shape

if TYPE_CHECKING:
    from torch import fx

UNARY = frozenset(
    {
        *("_to_copy", "clone", "detach", "alias", "copy", "fill", "lift_fresh_copy"),
        *("zeros_like", "ones_like", "full_like", "empty_like"),
        *("masked_fill", "where", "native_dropout_backward"),
    }
)
"""Operators that work entry by entry, though some of their forms are not tagged so."""


def is_pointwise(node: fx.Node, name: str) -> bool:
    """True for an operator that works entry by entry and draws no random numbers."""
    import torch

    tags: Any = getattr(node.target, "tags", ())
    draws = torch.Tag.nondeterministic_seeded in tags
    return not draws and (name in UNARY or torch.Tag.pointwise in tags)


def letters(node: fx.Node) -> list[Letter]:
    """One letter for each dimension; operands are broadcast from the last dimension."""
    if not hasattr(node.meta["val"], "shape"):
        return []
    out = shape(node)
    result = []
    for d, size in enumerate(out):
        axes = [_aligned(shape(operand), len(out), d, size) for operand in operands(node)]
        if size > 1 and any(axes):
            result.append(Letter(size, tuple(axes), (Axis(d),)))
    return result


def _aligned(own: tuple[int, ...], dims: int, d: int, size: int) -> Axis | None:
    """The axis of an operand that is broadcast to `dims` dimensions."""
    at = d - (dims - len(own))
    return Axis(at) if at >= 0 and own[at] == size else None
