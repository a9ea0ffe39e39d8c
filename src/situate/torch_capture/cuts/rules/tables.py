"""Letters of embeddings: the indices, the columns of the table, and its rows, the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture.cuts.letters import Axis, Letter, Local, arguments, operands, shape

if TYPE_CHECKING:
    from torch import fx

    from situate.torch_capture.cuts.writer import Writer


def _embedding(node: fx.Node) -> list[Letter]:
    """Operands: a table (rows, columns), and indices."""
    table, indices = map(shape, operands(node))
    last = len(indices)
    return [
        *(Letter(n, (None, Axis(d)), (Axis(d),)) for d, n in enumerate(indices) if n > 1),
        Letter(table[1], (Axis(1), None), (Axis(last),)),
        Letter(
            table[0],
            (Axis(0), None),
            ("sum",),
            write=_rows,
            kind=_kind(operands(node)[1]),
            is_numbered=True,
        ),
    ]


def _kind(indices: fx.Node) -> str:
    """`vocabulary` for a table whose indices are an input of the step; empty for others, such as
    a table of positions."""
    sources = [indices]
    while sources and sources[0].op == "call_function":
        sources = operands(sources[0])
    kinds = [type(source.meta.get("desc")).__name__ for source in sources[:1]]
    return "vocabulary" if kinds == ["PlainAOTInput"] else ""


def _embedding_backward(node: fx.Node) -> list[Letter]:
    """Operands: the gradient, and indices. The output is the gradient of the table."""
    gradient, indices = map(shape, operands(node))
    last, rows = len(indices), shape(node)[0]
    letters = [
        *(Letter(n, (Axis(d), Axis(d)), ("sum",)) for d, n in enumerate(indices) if n > 1),
        Letter(gradient[-1], (Axis(last), None), (Axis(1),)),
    ]
    # With a scale by frequency, a row's gradient depends on all indices alike, so rows are free.
    if arguments(node).get("padding_idx", -1) < 0:
        own_rows = Letter(rows, (None, None), (Axis(0),), write=_rows_of_gradient, is_numbered=True)
        letters.append(own_rows)
    return letters


def within(
    writer: Writer, node: fx.Node, indices: fx.Node, part: Local, other: int
) -> tuple[fx.Node, fx.Node]:
    """The indices less the first of a part, or `other` outside of the part; and where they lie
    outside."""
    import torch

    aten, piece = torch.ops.aten, part.piece
    number = piece.number
    low = writer.call(node, aten.lt.Scalar, (indices, piece.begin), number)
    high = writer.call(node, aten.ge.Scalar, (indices, piece.end), number)
    outside = writer.call(node, aten.logical_or.default, (low, high), number)
    shifted = writer.call(node, aten.sub.Tensor, (indices, piece.begin), number)
    return writer.call(node, aten.masked_fill.Scalar, (shifted, outside, other), number), outside


def _zeros_outside(
    writer: Writer, node: fx.Node, rows: fx.Node, outside: fx.Node, number: int
) -> fx.Node:
    """Rows, with zeros for indices outside of a part."""
    import torch

    aten = torch.ops.aten
    mask = writer.call(node, aten.unsqueeze.default, (outside, -1), number)
    return writer.call(node, aten.masked_fill.Scalar, (rows, mask, 0.0), number)


def _rows(writer: Writer, node: fx.Node, parts: Sequence[Local]) -> list[list[fx.Node]]:
    """A part looks its own rows up, and has zeros for others."""
    results = []
    for part in parts:
        (table, indices), number = part.operands, part.piece.number
        own, outside = within(writer, node, indices, part, 0)
        rows = writer.call(node, node.target, (table, own), number)
        results.append(_zeros_outside(writer, node, rows, outside, number))
    return [results]


def _rows_of_gradient(writer: Writer, node: fx.Node, parts: Sequence[Local]) -> list[list[fx.Node]]:
    """A part adds up the gradients of its own rows; row 0 gets zeros for others."""
    results = []
    _, _, _, padding, scaled = node.args
    for part in parts:
        (gradient, indices), number = part.operands, part.piece.number
        own, outside = within(writer, node, indices, part, 0)
        rows = _zeros_outside(writer, node, gradient, outside, number)
        call = (rows, own, part.piece.length, padding, scaled)
        results.append(writer.call(node, node.target, call, number))
    return [results]


RULES: dict[str, Callable[[Any], list[Letter]]] = {
    "embedding": _embedding,
    "embedding_dense_backward": _embedding_backward,
}
