"""Letters of ops that take entries of a dimension by index, or put entries there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from situate.torch_capture.cuts.letters import Axis, Letter, Local, arguments, operands, shape
from situate.torch_capture.cuts.rules.slices import local_sizes
from situate.torch_capture.nodes import operator_name

if TYPE_CHECKING:
    from torch import fx

    from situate.torch_capture.cuts.writer import Writer

ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})
"""Operators whose result is zeros."""

UNREAD = frozenset({"new_zeros", "new_ones", "new_full"})
"""Operators that take the type of their operand and read no entry of it."""


def _select(node: fx.Node) -> list[Letter]:
    """Operands: a tensor, and the indices of entries along one of its dimensions."""
    own, indices = map(shape, operands(node))
    dim = arguments(node)["dim"] % len(own)
    result = [
        Letter(size, (Axis(d), None), (Axis(d),))
        for d, size in enumerate(own)
        if d != dim and size > 1
    ]
    rows = [Letter(n, (None, Axis(0)), (Axis(dim),)) for n in indices if n > 1]
    return result + rows


def _add(node: fx.Node) -> list[Letter]:
    """Operands: a tensor, the indices of entries along one of its dimensions, and their addends."""
    own, indices, _ = map(shape, operands(node))
    dim = arguments(node)["dim"] % len(own)
    result = [
        Letter(size, (Axis(d), None, Axis(d)), (Axis(d),))
        for d, size in enumerate(own)
        if d != dim and size > 1
    ]
    if operator_name(operands(node)[0]) in ZEROS:
        addends = (None, Axis(0), Axis(dim))
        result += [Letter(n, addends, ("sum",), write=_sums) for n in indices if n > 1]
    return result


def _sums(writer: Writer, node: fx.Node, parts: Sequence[Local]) -> list[list[fx.Node]]:
    """A part adds its own entries to zeros of its own, which no other device sends."""
    import torch

    results, sizes = [], list(shape(node))
    for part in parts:
        _, indices, addends = part.operands
        number, new = part.piece.number, torch.ops.aten.new_zeros.default
        zeros = writer.call(node, new, (addends, sizes), number)
        args = (zeros, part.args[1], indices, addends)
        results.append(writer.call(node, node.target, args, number, part.kwargs))
    return [results]


def _gather(node: fx.Node) -> list[Letter]:
    """Operands: a tensor, and by entry of the result its index along one dimension."""
    own, out = shape(operands(node)[0]), shape(node)
    dim = arguments(node)["dim"] % max(1, len(own))
    result = [
        Letter(size, (Axis(d), Axis(d)), (Axis(d),))
        for d, size in enumerate(out)
        if d != dim and 1 < size == own[d]
    ]
    rows = [Letter(n, (None, Axis(dim)), (Axis(dim),)) for n in out[dim : dim + 1] if n > 1]
    return result + rows


def _scatter(node: fx.Node) -> list[Letter]:
    """Operands: a tensor, by entry its index along one dimension, and the entries to put there."""
    own, *others = map(shape, operands(node))
    dim = arguments(node)["dim"] % max(1, len(own))
    axes = len(others) + 1
    return [
        Letter(size, (Axis(d),) * axes, (Axis(d),))
        for d, size in enumerate(own)
        if d != dim and size > 1 and all(other[d] == size for other in others)
    ]


def _new(node: fx.Node) -> list[Letter]:
    """A letter for each dimension of new entries, which depend on no entry of the operand."""
    out = shape(node)
    return [
        Letter(size, (None,), (Axis(d),), partial(local_sizes, "size", Axis(d), out))
        for d, size in enumerate(out)
        if size > 1
    ]


def is_read(node: fx.Node, position: int) -> bool:
    """False for an operand that parts of an op do not wait for: they read none of its entries, or
    have zeros of their own in its place."""
    name, source = operator_name(node), operands(node)[position]
    is_sum_of_zeros = name == "index_add" and operator_name(source) in ZEROS
    return name not in UNREAD and not (is_sum_of_zeros and position == 0)


RULES: dict[str, Callable[[Any], list[Letter]]] = {
    "index_select": _select,
    "index_add": _add,
    "gather": _gather,
    **dict.fromkeys(("scatter", "scatter_add"), _scatter),
    **dict.fromkeys(UNREAD, _new),
}
