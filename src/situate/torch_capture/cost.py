"""FLOPs and memory traffic of a captured PyTorch op, from its fake tensors: shapes without
values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from situate.torch_capture.formulas import formula

PARTIAL_READS = frozenset(
    {
        *("embedding", "gather", "index", "_unsafe_index", "index_select", "take"),
        *("nll_loss_forward", "nll_loss2d_forward"),
    }
)
"""Ops that read of their first input only about as much as they write."""

BAGS = frozenset({"_embedding_bag", "_embedding_bag_forward_only"})
"""Ops that read of their first input a row for every index, and write sums of rows."""

SUMS = frozenset({"addmm", "addbmm", "addmv", "baddbmm"})
"""Products whose first input is added to what the others give."""


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
    name = kind.rpartition(".")[2]
    if read and name in PARTIAL_READS:
        read[0] = min(read[0], written)
    if name in BAGS:
        read[0] = min(read[0], _rows(*inputs[:2]))
    return sum(read) + written


def _rows(table: Any, indices: Any) -> int:
    return nbytes(table[:1]) * int(indices.numel())


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


def product_dtype(kind: str, inputs: list[object], value: object) -> str:
    """The dtype of what a product multiplies, whatever it is summed and handed on in: that of its
    first factor that floats or has 8 bits."""
    factors = inputs[kind.rpartition(".")[2] in SUMS :]
    read = next(filter(_is_multiplied, factors), None)
    return dtype(inputs, value) if read is None else dtype([read], None)


def _is_multiplied(value: object) -> bool:
    import torch

    if not isinstance(value, torch.Tensor):
        return False
    bytes_ = value.dtype in (torch.int8, torch.uint8)
    return bytes_ or value.is_floating_point() or value.is_complex()


def flops(packet: object, args: tuple[Any, ...], kwargs: Mapping[str, Any], value: object) -> int:
    """Multiplications and additions of an op with a known formula (twice its multiply-adds); 0 for
    ops that only move data or work elementwise."""
    count = formula(packet)
    return 0 if count is None else int(count(*args, **kwargs, out_val=value))


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
