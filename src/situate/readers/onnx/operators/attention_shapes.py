"""Output shapes of the attention operators of ONNX Runtime."""

from __future__ import annotations

from situate.readers.onnx.operators.operator_call import Call
from situate.readers.onnx.shapes import Shape


def projected(call: Call, past_place: int) -> list[Shape]:
    """Output shapes of `Attention` and `QAttention`: (batch, positions, width of values), (2,
    batch, heads, positions of past and present, width of a head)."""
    (batch, positions, _), weights = call.shape(0), call.shape(1)
    widths = call.numbers("qkv_hidden_sizes") or [weights[1] // 3] * 3
    heads, past = call.required("num_heads"), call.shape(past_place)
    return [
        (batch, positions, widths[2]),
        (2, batch, heads, _present(call, past, positions), widths[0] // heads),
    ]


def multi_head(call: Call, past_place: int) -> list[Shape]:
    """(batch, positions, width of values); keys and values of past and present, by head."""
    query, key, value = call.shape(0), call.shape(1), call.shape(2)
    heads = call.required("num_heads")
    batch, positions = query[:2]
    width = query[2] * query[4] if len(query) == 5 else query[2]
    values = width if not value else value[-1] * (heads if len(value) == 4 else 1)
    keys = positions if not key else key[2] if len(key) == 4 else key[1]
    present = batch, heads, _present(call, call.shape(past_place), keys)
    return [
        (batch, positions, values),
        (*present, width // heads),
        (*present, values // heads),
        (batch, heads, positions, present[2]),
    ]


def grouped(call: Call) -> list[Shape]:
    """As `multi_head`, with fewer heads of keys and values, and perhaps all three in one input."""
    (batch, positions, width), heads = call.shape(0), call.required("num_heads")
    fewer = call.required("kv_num_heads")
    head = width // (heads if call.has(1) else heads + 2 * fewer)
    total = _present(call, call.shape(3), positions)
    present = (batch, fewer, total, head)
    return [(batch, positions, heads * head), present, present, (batch, heads, positions, total)]


def _present(call: Call, past: Shape, positions: int) -> int:
    """A shared buffer has room for all positions from the beginning."""
    before = past[-2] if past else 0
    shared = before and call.number("past_present_share_buffer")
    return before if shared else before + positions
