"""What a captured PyTorch op computes and moves, from its fake tensors: shapes without values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

PARTIAL_READS = frozenset({"embedding", "gather", "index", "index_select", "nll_loss_forward"})
"""Ops that read of their first input only about as much as they write."""


def nbytes(value: object) -> int:
    """Bytes of a tensor's elements; 0 for whatever is no tensor."""
    import torch

    if not isinstance(value, torch.Tensor):
        return 0
    return int(value.numel()) * value.element_size()


def outputs(value: object) -> list[object]:
    """The outputs of an op, one entry each, also where an output was not asked for."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def traffic(kind: str, inputs: list[object], value: object) -> int:
    """Bytes read and written: each input's elements, but no more than its storage, and outputs."""
    written = sum(nbytes(output) for output in outputs(value))
    read = [_read(tensor) for tensor in inputs]
    if read and kind.rpartition(".")[2] in PARTIAL_READS:
        read[0] = min(read[0], written)
    return sum(read) + written


def _read(value: object) -> int:
    import torch

    if not isinstance(value, torch.Tensor):
        return 0
    return min(nbytes(value), int(value.untyped_storage().nbytes()))


def dtype(inputs: list[object], value: object) -> str:
    """The dtype an op computes in: that of its first floating output, else input, else output."""
    import torch

    written = [t for t in outputs(value) if isinstance(t, torch.Tensor)]
    tensors = [*written, *(t for t in inputs if isinstance(t, torch.Tensor))]
    chosen = next((t for t in tensors if t.is_floating_point() or t.is_complex()), None)
    if chosen is None:
        chosen = next(iter(tensors), None)
    return "float32" if chosen is None else str(chosen.dtype).removeprefix("torch.")


def flops(packet: object, args: tuple[Any, ...], kwargs: Mapping[str, Any], value: object) -> int:
    """Multiplications and additions of an op with a known formula (twice its multiply-adds), as
    torch.utils.flop_counter counts them; 0 for ops that only move data or work elementwise."""
    formula = _formulas().get(packet)
    return 0 if formula is None else int(formula(*args, **kwargs, out_val=value))


@cache
def _formulas() -> dict[object, Callable[..., int]]:
    """PyTorch's own formulas, and those of ops that it has only on the CPU or leaves out."""
    import torch
    from torch.utils.flop_counter import flop_registry

    aten = torch.ops.aten
    own = {
        aten.mv: lambda a, x, out_val: 2 * a.numel(),
        aten.dot: lambda a, b, out_val: 2 * a.numel(),
        aten.addmv: lambda bias, a, x, out_val, **_: 2 * a.numel(),
        aten._grouped_mm: lambda a, b, *_, out_val, **__: 2 * out_val.numel() * a.shape[-1],
        aten.mkldnn_rnn_layer: _rnn_layer_flops,
        aten.mkldnn_rnn_layer_backward: lambda *args, **_: 2 * _rnn_layer_flops(*args),
        aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward_flops,
    }
    return {**flop_registry, **own}


def _rnn_layer_flops(
    steps: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, *_: Any, **__: Any
) -> int:
    """Both matrix products of every step of every sequence."""
    return 2 * (steps.numel() // steps.shape[-1]) * (w_ih.numel() + w_hh.numel())


def _attention_flops(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any
) -> int:
    """Scores, and the sums of values: heads may share keys and values."""
    scores = math.prod(query.shape[:3]) * key.shape[2]
    return 2 * scores * (query.shape[3] + value.shape[3])


def _attention_backward_flops(
    gradient: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *_: Any,
    **__: Any,
) -> int:
    """Scores anew, and the gradients of what was multiplied."""
    scores = math.prod(query.shape[:3]) * key.shape[2]
    return 2 * scores * (3 * query.shape[3] + 2 * value.shape[3])


def tensors(arguments: object) -> Iterator[object]:
    """All tensors in nested arguments, in order."""
    import torch

    if isinstance(arguments, torch.Tensor):
        yield arguments
    elif isinstance(arguments, (list, tuple)):
        for entry in arguments:
            yield from tensors(entry)
    elif isinstance(arguments, Mapping):
        yield from tensors(list(arguments.values()))


def values(arguments: Any) -> Any:
    """Arguments of a node with the fake tensors in place of the nodes that make them."""
    from torch.fx import map_arg

    return map_arg(arguments, lambda node: node.meta["val"])
