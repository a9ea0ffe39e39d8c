"""Letters of splits and slices, which take entries of one dimension, and of their gradients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from situate.torch_capture.cuts.letters import Axis, Letter, Piece, arguments, operands, shape
from situate.torch_capture.nodes import operator_name

if TYPE_CHECKING:
    from torch import fx

MAX_FEATURE_DIMS = 3
"""Most dimensions of a tensor that has the features of a token along its last: samples, positions
and features."""


def _split(node: fx.Node) -> list[Letter]:
    """Letters of a split into several outputs, or of a selection of entries along one dimension.

    Every other dimension is a letter. If all outputs are of one size, so is the split dimension,
    with one range for each output.
    """
    x = operands(node)[0]
    own, outs = shape(x), list(node.meta["val"])
    dim = arguments(node).get("dim", 0) % len(own)
    # `unbind` removes the dimension; the others keep it.
    keeps = not outs or outs[0].dim() == len(own)
    result = others(own, dim, keeps, len(outs))
    lengths = {int(out.shape[dim]) for out in outs} if keeps else set()
    if len(lengths) == 1 and (length := lengths.pop()) > 1:
        axis = Axis(dim, outer=len(outs))
        sizes = partial(_local_split, length, len(outs))
        result.append(Letter(length, (axis,), (Axis(dim),) * len(outs), sizes))
    return result


def others(own: Sequence[int], dim: int, keeps: bool, outputs: int = 1) -> list[Letter]:
    """A letter for each dimension but one, which the result keeps or lacks."""
    return [
        Letter(size, (Axis(d),), (Axis(d - (not keeps and d > dim)),) * outputs)
        for d, size in enumerate(own)
        if d != dim and size > 1
    ]


def _local_split(
    length: int, count: int, options: Mapping[str, Any], piece: Piece
) -> dict[str, Any]:
    own = piece.of(length)
    lengths = [own] * count
    return {"split_size": own, "split_sizes": lengths, "split_size_or_sections": lengths}


def _slice(node: fx.Node) -> list[Letter]:
    """Letters of a slice: every dimension of which it takes all entries, and a range of features.

    Slices of a fused product, such as that of queries, keys and values, take its ranges.
    """
    x = operands(node)[0]
    before, after = shape(x), shape(node)
    dim = arguments(node).get("dim", 0) % len(before)
    result = others(before, dim, len(before) == len(after))
    ranges = _range_among(node, x.users)
    if ranges is not None:
        result.append(Letter(ranges.length, (ranges.axis(dim),), (Axis(dim),), ranges.local))
    return result


def _slice_gradient(node: fx.Node) -> list[Letter]:
    """Letters of the gradient of a slice or of one index: zeros but for the entries taken."""
    out = shape(node)
    dim = arguments(node)["dim"] % len(out)
    keeps = len(shape(operands(node)[0])) == len(out)
    result = [
        Letter(
            size,
            (Axis(d - (not keeps and d > dim)),),
            (Axis(d),),
            partial(local_sizes, "input_sizes", Axis(d), out),
        )
        for d, size in enumerate(out)
        if d != dim and size > 1
    ]
    ranges = _range_among(node, _terms(node))
    if ranges is not None:
        sizes = partial(_local_gradient, ranges, dim, out)
        result.append(Letter(ranges.length, (Axis(dim),), (ranges.axis(dim),), sizes))
    return result


def _terms(node: fx.Node) -> list[fx.Node]:
    """The terms of the sum that a gradient is a term of."""
    root = node
    while len(root.users) == 1 and operator_name(user := next(iter(root.users))) == "add":
        root = user
    terms, pending = [], [root]
    while pending:
        one = pending.pop()
        if operator_name(one) == "add":
            pending += operands(one)
        else:
            terms.append(one)
    return terms


@dataclass(frozen=True)
class _Range:
    """One of equal ranges of the features of each token.

    Attributes:
        length: entries of a range.
        count: the number of ranges.
        number: of this range, from 0.
    """

    length: int
    count: int
    number: int

    @classmethod
    def of(cls, node: fx.Node) -> _Range | None:
        """The range that a slice, or its gradient, takes; None if it takes none.

        Halves of the entries of a head, as rotary positions take them, are no such features.
        """
        is_gradient = operator_name(node) == "slice_backward"
        if not is_gradient and operator_name(node) != "slice":
            return None
        options, x = arguments(node), operands(node)[0]
        whole, part = (shape(node), shape(x)) if is_gradient else (shape(x), shape(node))
        dim, step = options.get("dim", 0) % len(whole), options.get("step", 1)
        size, length = whole[dim], part[dim]
        begin = options.get("start") or 0
        begin += size if begin < 0 else 0
        is_features = dim == len(whole) - 1 and len(whole) <= MAX_FEATURE_DIMS and step == 1
        if not is_features or not 1 < length < size or size % length or begin % length:
            return None
        return cls(length, size // length, begin // length)

    def axis(self, dim: int) -> Axis:
        """The axis of the sliced dimension."""
        return Axis(dim, outer=self.count)

    def local(self, options: Mapping[str, Any], piece: Piece) -> dict[str, Any]:
        """The begin and the end of a part's slice."""
        own = piece.of(self.length)
        return {"start": self.number * own, "end": (self.number + 1) * own}


def _range_among(node: fx.Node, siblings: Iterable[fx.Node]) -> _Range | None:
    """The range of a slice, if it and its siblings take all of several equal ranges.

    Ranges of several lengths, such as those of grouped queries, would divide a product in too many
    ways.
    """
    own = _Range.of(node)
    ranges = [_Range.of(one) for one in siblings] if own is not None else []
    if own is None or {one.length if one else 0 for one in ranges} != {own.length}:
        return None
    numbers = {one.number for one in ranges if one is not None}
    return own if len(numbers) == own.count else None


def _local_gradient(
    ranges: _Range, dim: int, out: Sequence[int], options: Mapping[str, Any], piece: Piece
) -> dict[str, Any]:
    sizes = list(out)
    sizes[dim] = ranges.count * piece.of(ranges.length)
    return {"input_sizes": sizes, **ranges.local(options, piece)}


def local_sizes(
    name: str, axis: Axis, whole: Sequence[int], options: Mapping[str, Any], piece: Piece
) -> dict[str, Any]:
    sizes = list(whole)
    sizes[axis.dim] = piece.of(sizes[axis.dim])
    return {name: sizes}


RULES = {
    **dict.fromkeys(("split", "split_with_sizes", "unbind", "unsafe_split"), _split),
    **dict.fromkeys(("slice", "select"), _slice),
    **dict.fromkeys(("slice_backward", "select_backward"), _slice_gradient),
}
