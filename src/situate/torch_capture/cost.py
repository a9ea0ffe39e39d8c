"""FLOPs and memory traffic of a captured op, computed from its fake tensors, and warnings about
operators without a FLOP formula."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from situate.readers.products import PRODUCTS, convolution_backward, grouped_product

if TYPE_CHECKING:
    import torch
    from torch import fx

PARTIAL_READS = frozenset(
    {
        *("embedding", "gather", "index", "_unsafe_index", "index_select", "take"),
        *("nll_loss_forward", "nll_loss2d_forward"),
    }
)
"""Ops that read about as many bytes of their first input as they write."""

BAGS = frozenset({"_embedding_bag", "_embedding_bag_forward_only"})
"""Ops that read one row of their first input for every index, and write sums of rows."""

SUMS = frozenset({"addmm", "addbmm", "addmv", "baddbmm"})
"""Products that add their first input to the product of the others."""


def nbytes(value: object) -> int:
    """Bytes of a tensor's elements; 0 for any other value."""
    import torch

    if not isinstance(value, torch.Tensor):
        return 0
    return int(value.numel()) * value.element_size()


def outputs(value: object) -> list[object]:
    """The outputs of an op, one entry each, including outputs that nobody uses."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def traffic(kind: str, inputs: list[object], value: object) -> int:
    """Bytes read and written: each input's elements, but at most its storage, and all outputs."""
    bytes_written = sum(nbytes(output) for output in outputs(value))
    bytes_read = [_bytes_read(tensor) for tensor in inputs]
    name = kind.rpartition(".")[2]
    if bytes_read and name in PARTIAL_READS:
        bytes_read[0] = min(bytes_read[0], bytes_written)
    # The table's rows are read once per index, at most the whole table.
    if name in BAGS:
        bytes_read[0] = min(bytes_read[0], _rows(*inputs[:2]))
    return sum(bytes_read) + bytes_written


def _rows(table: Any, indices: Any) -> int:
    return nbytes(table[:1]) * int(indices.numel())


def _bytes_read(value: object) -> int:
    import torch

    if not isinstance(value, torch.Tensor):
        return 0
    # An expanded tensor has stride 0, so it has more elements than its storage holds.
    return min(nbytes(value), int(value.untyped_storage().nbytes()))


def dtype(inputs: list[object], value: object) -> str:
    """The dtype an op computes in: that of its first floating output, otherwise input, otherwise
    output."""
    import torch

    output_tensors = [t for t in outputs(value) if isinstance(t, torch.Tensor)]
    tensors = [*output_tensors, *(t for t in inputs if isinstance(t, torch.Tensor))]
    first = next((t for t in tensors if t.is_floating_point() or t.is_complex()), None)
    if first is None:
        first = next(iter(tensors), None)
    return "float32" if first is None else str(first.dtype).removeprefix("torch.")


def product_dtype(kind: str, inputs: list[object], value: object) -> str:
    """The dtype of a product's factors, whatever dtype the sum has: that of the first factor that
    is floating-point or has 8 bits."""
    # True as an index is 1: a sum's first input is the addend, not a factor.
    factors = inputs[kind.rpartition(".")[2] in SUMS :]
    factor = next(filter(_is_multiplied, factors), None)
    return dtype(inputs, value) if factor is None else dtype([factor], None)


def _is_multiplied(value: object) -> bool:
    import torch

    if not isinstance(value, torch.Tensor):
        return False
    has_eight_bits = value.dtype in (torch.int8, torch.uint8)
    return has_eight_bits or value.is_floating_point() or value.is_complex()


def flops(packet: object, args: tuple[Any, ...], kwargs: Mapping[str, Any], value: object) -> int:
    """Multiplications and additions of an op with a known formula (twice its multiply-adds); 0 for
    ops that only move data or work elementwise."""
    count = _formula(packet)
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
    """Arguments of a node, with fake tensors in place of nodes."""
    from torch.fx import map_arg

    return map_arg(arguments, lambda node: node.meta["val"])


def _formula(packet: object) -> Callable[..., int] | None:
    """The FLOP formula of an operator of PyTorch or of another package; None if nobody registered
    one, as for ops that only move data or work elementwise."""
    from torch.utils.flop_counter import flop_registry

    corrected = _corrected().get(packet) or flop_registry.get(packet)
    return corrected or _missing().get(packet) or CUSTOM.get(str(packet))


@cache
def _corrected() -> dict[object, Callable[..., int]]:
    """Formulas that replace PyTorch's own, which counts all groups as one."""
    import torch

    return {torch.ops.aten.convolution_backward: convolution_backward}


@cache
def _missing() -> dict[object, Callable[..., int]]:
    """Formulas of ops that PyTorch has only on the CPU, or has no formula for."""
    import torch

    return {getattr(torch.ops.aten, name): count for name, count in PRODUCTS.items()}


def _grouped_products_backward(a: torch.Tensor, b: torch.Tensor, *_: Any, out_val: object) -> int:
    """FLOPs of the gradients of both factors: rows, and one matrix per group of rows."""
    # a (rows, in), b (groups, in, out): both gradients take rows * in * out multiply-adds.
    return 2 * 2 * a.numel() * b.shape[2]


CUSTOM: dict[str, Callable[..., int]] = {
    "transformers.grouped_mm_fallback": grouped_product,
    "transformers.grouped_mm_fallback_backward": _grouped_products_backward,
}
"""Products of transformers' experts, for dtypes that `aten._grouped_mm` does not support."""


OWN = frozenset({"aten", "prims", "situate"})
"""Namespaces of PyTorch and of `slices.norm_operators`. Their operators without a formula multiply
nothing."""


UNCOUNTED = (
    "counted as memory traffic only: {}; register FLOPs by "
    "torch.utils.flop_counter.register_flop_formula, or measure (situate profile)"
)
OVERWRITING = (
    "counted as memory traffic only, and run by no plan, because inputs are written over: {}; "
    "return new tensors instead"
)


def operator_warnings(nodes: Iterable[fx.Node]) -> tuple[str, ...]:
    """Warnings about operators whose FLOPs are unknown, and about operators that write over their
    inputs. Each operator is named once."""
    nodes = list(nodes)
    names_by_warning = {UNCOUNTED: map(_uncounted, nodes), OVERWRITING: map(overwrites, nodes)}
    listed = {line: _first_names(names) for line, names in names_by_warning.items()}
    return tuple(line.format(names) for line, names in listed.items() if names)


def overwrites(node: fx.Node) -> str:
    """The operator that writes over its inputs, such as `mine::add_`, behind a node that PyTorch
    runs on copies; empty for other nodes."""
    from torch import _ops

    # Functionalisation wraps an operator that mutates its inputs in the higher-order operator
    # `auto_functionalized`, whose first argument is the operator.
    operator = node.args[0] if isinstance(node.target, _ops.HigherOrderOperator) else None
    return _operator_name(operator) if isinstance(operator, _ops.OpOverload) else ""


def _uncounted(node: fx.Node) -> str:
    from torch import _ops

    target = node.target
    if not isinstance(target, _ops.OpOverload) or target.namespace in OWN:
        return ""
    return "" if _formula(target.overloadpacket) else _operator_name(target)


def _operator_name(operator: Any) -> str:
    return str(operator.overloadpacket._qualified_op_name)


def _first_names(names: Iterable[str]) -> str:
    """The first five distinct names, and the number of the others. Empty names do not count."""
    distinct = list(filter(None, dict.fromkeys(names)))
    return ", ".join(distinct[:5]) + (f" and {len(distinct) - 5} more" if len(distinct) > 5 else "")
