"""Letters of dropout: every dimension, with the draws of the whole op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture import names
from situate.torch_capture.cuts.letters import Axis, Letter, Local, arguments, shape

if TYPE_CHECKING:
    from torch import fx

    from situate.torch_capture.cuts.writer import Writer


def _dropout(node: fx.Node) -> list[Letter]:
    """One letter for each dimension."""
    options = arguments(node)
    draws = options["train"] is not False and 0 < options["p"] < 1
    own = shape(node)
    return [
        Letter(size, (Axis(d),), (Axis(d), Axis(d)), write=_write_along(d) if draws else None)
        for d, size in enumerate(own)
        if size > 1
    ]


def _write_along(dim: int) -> Callable[..., list[list[fx.Node]]]:
    def write(writer: Writer, node: fx.Node, parts: Sequence[Local]) -> list[list[fx.Node]]:
        from situate.torch_capture.cuts.dropout_operator import dropout_part

        operator, mask = dropout_part._opoverload, node.meta["val"][1]
        sizes, strides = list(mask.shape), list(mask.stride())
        calls = []
        for part in parts:
            piece = part.piece
            place = [dim, sizes[dim] // piece.units, piece.begin, piece.end]
            args = (part.operands[0], node.args[1], sizes, strides, place)
            call = writer.call(node, operator, args, piece.number)
            # All parts draw the numbers of one draw of the step.
            call.meta[names.DRAW] = node.name
            calls.append(call)
        return [[writer.item(call, k) for call in calls] for k in range(2)]

    return write


RULES: dict[str, Callable[[Any], list[Letter]]] = {"native_dropout": _dropout}
