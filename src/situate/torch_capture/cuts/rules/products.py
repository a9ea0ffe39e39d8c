"""Letters of matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture.cuts.letters import (
    Axis,
    Letter,
    Local,
    arguments,
    operands,
    shape,
)

if TYPE_CHECKING:
    from torch import fx

    from situate.torch_capture.cuts.writer import Writer


def _mm(node: fx.Node) -> list[Letter]:
    """(n, k) times (k, m)."""
    (n, k), (_, m) = (shape(x) for x in operands(node))
    return _large(
        [
            Letter(n, (Axis(0), None), (Axis(0),)),
            Letter(m, (None, Axis(1)), (Axis(1),)),
            Letter(k, (Axis(1), Axis(0)), ("sum",)),
        ]
    )


def _bmm(node: fx.Node) -> list[Letter]:
    """(b, n, k) times (b, k, m)."""
    (b, n, k), (_, _, m) = (shape(x) for x in operands(node))
    return _large(
        [
            Letter(b, (Axis(0), Axis(0)), (Axis(0),)),
            Letter(n, (Axis(1), None), (Axis(1),)),
            Letter(m, (None, Axis(2)), (Axis(2),)),
            Letter(k, (Axis(2), Axis(1)), ("sum",)),
        ]
    )


def _addmm(node: fx.Node) -> list[Letter]:
    """A product (n, k) times (k, m) plus a term, which the first part of a sum adds."""
    term, x, y = (shape(operand) for operand in operands(node))
    (n, k), (_, m) = x, y
    columns, rows = (_broadcast(term, 2, d, size) for d, size in ((1, m), (0, n)))
    contracted = Letter(k, (None, Axis(1), Axis(0)), ("sum",), write=_once_added)
    return _large(
        [
            Letter(n, (rows, Axis(0), None), (Axis(0),)),
            Letter(m, (columns, None, Axis(1)), (Axis(1),)),
            *([] if _is_scaled(node) else [contracted]),
        ]
    )


def _baddbmm(node: fx.Node) -> list[Letter]:
    """Products (b, n, k) times (b, k, m) plus a term."""
    term, x, y = (shape(operand) for operand in operands(node))
    (b, n, _), (_, _, m) = x, y
    own = [_broadcast(term, 3, d, size) for d, size in enumerate((b, n, m))]
    return _large(
        [
            Letter(b, (own[0], Axis(0), Axis(0)), (Axis(0),)),
            Letter(n, (own[1], Axis(1), None), (Axis(1),)),
            Letter(m, (own[2], None, Axis(2)), (Axis(2),)),
        ]
    )


def _mv(node: fx.Node) -> list[Letter]:
    """(n, k) times (k,)."""
    n, k = shape(operands(node)[0])
    return _large(
        [
            Letter(n, (Axis(0), None), (Axis(0),)),
            Letter(k, (Axis(1), Axis(0)), ("sum",)),
        ]
    )


def _grouped(node: fx.Node) -> list[Letter]:
    """Rows (s, k), one group for each expert, times that expert's (k, m) of (e, k, m).

    With two matrices, whose contracted dimension has the groups: (k, s) times (s, m) is (e, k, m).
    """
    x, y, *others = operands(node)
    if len(shape(x)) == 2 and len(shape(y)) == 2:
        (k, _), (_, m) = shape(x), shape(y)
        return _large(
            [
                Letter(k, (Axis(0), None, *_none(others)), (Axis(1),)),
                Letter(m, (None, Axis(1), *_none(others)), (Axis(2),)),
            ]
        )
    if (len(shape(x)), len(shape(y))) != (2, 3):
        return []
    _, k, m = shape(y)
    return _large(
        [
            Letter(m, (None, Axis(2), *_none(others)), (Axis(1),)),
            Letter(k, (Axis(1), Axis(1), *_none(others)), ("sum",)),
        ]
    )


def _grouped_gradients(node: fx.Node) -> list[Letter]:
    """The gradients (s, k) and (e, k, m) of a grouped product with rows (s, m)."""
    _, k, m = shape(operands(node)[1])
    return _large(
        [
            Letter(k, (Axis(1), Axis(1), None, None), (Axis(1), Axis(1))),
            Letter(m, (None, Axis(2), None, Axis(1)), ("sum", Axis(2))),
        ]
    )


def _none(others: Sequence[fx.Node]) -> list[None]:
    """Operands that all parts read whole."""
    return [None] * len(others)


def _large(letters: Sequence[Letter]) -> list[Letter]:
    return [letter for letter in letters if letter.size > 1]


def _broadcast(term: tuple[int, ...], dims: int, d: int, size: int) -> Axis | None:
    # A term of fewer dimensions lacks the first ones.
    at = d - (dims - len(term))
    return Axis(at) if at >= 0 and term[at] == size else None


def _is_scaled(node: fx.Node) -> bool:
    options = arguments(node)
    return any(options.get(name, 1) != 1 for name in ("beta", "alpha"))


def _once_added(writer: Writer, node: fx.Node, parts: Sequence[Local]) -> list[list[fx.Node]]:
    import torch

    first, *others = parts
    products = [
        writer.call(node, torch.ops.aten.mm.default, part.operands[1:], part.piece.number)
        for part in others
    ]
    return [[writer.call(node, node.target, first.args, 0), *products]]


RULES: dict[str, Callable[[Any], list[Letter]]] = {
    "mm": _mm,
    "bmm": _bmm,
    "addmm": _addmm,
    "baddbmm": _baddbmm,
    "mv": _mv,
    "_grouped_mm": _grouped,
    "grouped_mm_fallback": _grouped,
    "grouped_mm_fallback_backward": _grouped_gradients,
}
