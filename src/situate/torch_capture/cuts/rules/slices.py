"""Letters of splits and slices, which take entries of one dimension, and of their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    Each of several slices of equal length takes one of the ranges of a fused product, such as
    that of queries, keys and values.
    """
    before, after = shape(operands(node)[0]), shape(node)
    options = arguments(node)
    dim = options.get("dim", 0) % len(before)
    result = others(before, dim, len(before) == len(after))
    if operator_name(node) == "slice":
        ranges = _Ranges.of(options, before, dim, after[dim])
        if ranges is not None:
            letter = (ranges.axis(dim),), (Axis(dim),), ranges.local
            result.append(Letter(ranges.length, *letter))
    return result


def _slice_gradient(node: fx.Node) -> list[Letter]:
    """Letters of the gradient of a slice or of one index: zeros but for the entries taken."""
    out = shape(node)
    options = arguments(node)
    dim = options["dim"] % len(out)
    own = shape(operands(node)[0])
    keeps = len(own) == len(out)
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
    ranges = _Ranges.of(options, out, dim, own[dim]) if keeps else None
    if ranges is not None:
        letter = (Axis(dim),), (ranges.axis(dim),), partial(_local_gradient, ranges, dim, out)
        result.append(Letter(ranges.length, *letter))
    return result


@dataclass(frozen=True)
class _Ranges:
    """Equal ranges of a dimension, of which a slice takes one.

    Attributes:
        length: entries of a range.
        count: the number of ranges.
        number: of the slice's range, from 0.
    """

    length: int
    count: int
    number: int

    @classmethod
    def of(
        cls, options: Mapping[str, Any], sizes: Sequence[int], dim: int, length: int
    ) -> _Ranges | None:
        """The ranges of a slice of the features of each token; None if it takes no whole range.

        Halves of the entries of a head, as rotary positions take them, are no such features.
        """
        is_features = dim == len(sizes) - 1 and len(sizes) <= MAX_FEATURE_DIMS
        begin, step = options.get("start") or 0, options.get("step", 1)
        begin += sizes[dim] if begin < 0 else 0
        if not is_features or step != 1 or not 1 < length < sizes[dim]:
            return None
        if sizes[dim] % length or begin % length:
            return None
        return cls(length, sizes[dim] // length, begin // length)

    def axis(self, dim: int) -> Axis:
        """The axis of the sliced dimension."""
        return Axis(dim, outer=self.count)

    def local(self, options: Mapping[str, Any], piece: Piece) -> dict[str, Any]:
        """The begin and the end of a part's slice."""
        own = piece.of(self.length)
        return {"start": self.number * own, "end": (self.number + 1) * own}


def _local_gradient(
    ranges: _Ranges, dim: int, out: Sequence[int], options: Mapping[str, Any], piece: Piece
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
