"""Arithmetic of attention operators, whose queries, keys and values may be packed in one input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from situate.readers.onnx.shapes import Info, Shape

PAST = {
    "Attention": 4,
    "DecoderMaskedMultiHeadAttention": 5,
    "DecoderMaskedSelfAttention": 4,
    "GroupQueryAttention": 3,
    "MultiHeadAttention": 6,
    "QAttention": 8,
}
"""The input with the past keys, (..., positions, width)."""

PROJECTING = {"Attention", "DecoderMaskedSelfAttention", "QAttention"}
"""Operators of `com.microsoft` with projection weights in place of keys."""


def attention(node: Any, inputs: Sequence[Info], outputs: Sequence[Info]) -> int:
    """Scores of queries and all keys, and sums of values: over (..., positions, width) tensors."""
    query, key, past = (_shape(inputs, place) for place in (0, 1, PAST[node.op_type]))
    projections = 0
    if node.domain == "com.microsoft" and node.op_type in PROJECTING:
        projections, key = 2 * math.prod(query) * key[-1], ()
    result = outputs[0].elements
    scores = math.prod(query) if key else result
    keys = _positions(key or query) + (past[-2] if past else 0)
    return projections + 2 * keys * (scores + result)


def _shape(inputs: Sequence[Info], place: int) -> Shape:
    """The shape of an input; empty if it is left out."""
    shape = inputs[place].shape if place < len(inputs) else ()
    return shape if len(shape) > 1 else ()


def _positions(shape: Shape) -> int:
    """Positions of a shape (batch, positions, heads, 2 or 3, width), or (..., positions, width)."""
    return shape[1] if len(shape) == 5 else shape[-2]
