"""Replacements of PyTorch's operators.

The first group runs PyTorch's CPU-only operators on any device, with the results and layouts on
which the captured step depends. Dropout on a CPU rounds like eager PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention of queries (b, h, l, e) to keys and values (b, g, s, e), with h a multiple of g.

    Returns:
        The output, with the queries' layout, and the logarithms (b, h, l) of the sums of
            exponentials. The CPU's kernel has no dropout either.
    """
    import torch

    scores = _scores(query, key, is_causal, attn_mask, scale)
    sums = torch.logsumexp(scores, 3)
    # A query that may see no key has weights of 0, as by the kernel for CPUs, and not 0 / 0.
    sums = torch.where(sums == -torch.inf, 0.0, sums)
    weights = torch.exp(scores - sums.unsqueeze(3))
    output = weights @ _of_heads(value.to(scores.dtype), query)
    return torch.empty_like(query).copy_(output), _by_row(sums)


def attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, keys and values (T. Dao et al., NeurIPS 2022, Appendix B.2)."""
    import torch

    scores = _scores(query, key, is_causal, attn_mask, scale)
    gradient, factor = grad_out.to(scores.dtype), _factor(query, scale)
    keys, values = (_of_heads(tensor.to(scores.dtype), query) for tensor in (key, value))
    weights = torch.exp(scores - logsumexp.unsqueeze(3))
    # (b, h, l, s): the softmax subtracts from each weight's gradient their mean under the weights,
    # which equals the sum of output times gradient over e.
    of_weights = gradient @ values.mT - (gradient * out).sum(3, keepdim=True)
    of_scores = weights * of_weights * factor
    # (b, h, l, s) @ (b, h, s, e) -> queries (b, h, l, e); transposed @ (b, h, l, e) -> keys (b, h,
    # s, e).
    factors = (of_scores @ keys, query), (of_scores.mT @ query.to(scores.dtype), key)
    of_query, of_key, of_value = (
        _by_row(_of_groups(tensor, like).to(like.dtype))
        for tensor, like in (*factors, (weights.mT @ gradient, value))
    )
    return of_query, of_key, of_value


def lstm(
    inputs: Tensor,
    of_inputs: Tensor,
    of_hidden: Tensor,
    bias_of_inputs: Tensor,
    bias_of_hidden: Tensor,
    hidden: Tensor,
    cell: Tensor,
    reverse: bool,
    *options: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One layer of an LSTM over inputs (t, b, f) in one direction.

    Returns:
        Outputs (t, b, h), last hidden and cell state (1, b, h), and an empty workspace.
    """
    import torch
    from torch.nn.functional import linear

    # (t, b, f) -> (t, b, 4 h) at once: the inputs' part of the gates depends on no earlier step.
    gate_inputs = linear(inputs, of_inputs, bias_of_inputs + bias_of_hidden)
    h, c = hidden.reshape(-1, hidden.shape[-1]), cell.reshape(-1, cell.shape[-1])
    outputs = torch.empty_like(gate_inputs[..., : h.shape[1]])
    for t in reversed(range(len(gate_inputs))) if reverse else range(len(gate_inputs)):
        input_gate, forget_gate, cell_gate, output_gate = (
            gate_inputs[t] + h @ of_hidden.t()
        ).chunk(4, 1)
        c = forget_gate.sigmoid() * c + input_gate.sigmoid() * cell_gate.tanh()
        h = outputs[t] = output_gate.sigmoid() * c.tanh()
    return outputs, h.view(hidden.shape), c.view(cell.shape), inputs.new_empty(0)


def _scores(
    query: Tensor, key: Tensor, is_causal: bool, mask: Tensor | None, scale: float | None
) -> Tensor:
    """(b, h, l, s) scores, in single precision at least."""
    import torch

    dtype = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(dtype) @ _of_heads(key.to(dtype), query).mT * _factor(query, scale)
    if mask is not None:
        scores = scores + mask
    if is_causal:
        ahead = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).triu(1)
        # exp(-inf) is 0: a query gives no weight to keys that come after it.
        scores = scores.masked_fill(ahead, -torch.inf)
    return scores


def _factor(query: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[3]) if scale is None else scale


def _of_heads(groups: Tensor, query: Tensor) -> Tensor:
    """(b, h, s, e) from (b, g, s, e): neighbouring heads share keys and values."""
    return groups.repeat_interleave(query.shape[1] // groups.shape[1], 1)


def _of_groups(heads: Tensor, like: Tensor) -> Tensor:
    """(b, g, s, e) sums over the heads (b, h, s, e) that share keys or values."""
    b, h, s, e = heads.shape
    # (b, h, s, e) -> (b, g, h / g, s, e) -> (b, g, s, e).
    return heads.reshape(b, like.shape[1], h // like.shape[1], s, e).sum(2)


def _by_row(tensor: Tensor) -> Tensor:
    """The tensor with the second dimension inside the third in memory."""
    # Copied as (b, l, h, ...) and shown as (b, h, l, ...): the values stay, their strides change.
    return tensor.transpose(1, 2).contiguous().transpose(1, 2)


CPU_ONLY_REPLACEMENTS: dict[str, Callable[..., Any]] = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": attention,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": attention_backward,
    "aten::mkldnn_rnn_layer": lstm,
}


def dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """The result and the mask of `aten.native_dropout`, by which PyTorch traces dropout.

    Eager PyTorch multiplies by noise of the input's dtype: 0 or 1 / (1 - p), rounded. The
    operator's kernel multiplies by a mask and by 1 / (1 - p), which rounds differently.
    """
    import torch

    if not train or p in (0, 1):
        return torch.ops.aten.native_dropout.default(x, p, train)  # type: ignore[no-any-return]
    mask = torch.empty_like(x, dtype=torch.bool).bernoulli_(1 - p)
    return x * _noise(mask, 1 - p, x), mask


def dropout_backward(gradient: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The result of `aten.native_dropout_backward`; `scale` is 1 / (1 - p), or 0 if p is 1."""
    if not scale:
        return gradient * mask
    return gradient * _noise(mask, 1 / scale, gradient)


def _noise(mask: Tensor, share: float, like: Tensor) -> Tensor:
    """The mask divided by the kept share, in the dtype of `like`."""
    return mask * like.new_ones(()).div_(share)
