"""Values of a step that is cut: whole, in parts, or as partial results; and the ops that turn one
form into another.

A gather is a concatenation in each part that reads the whole; a reduce-scatter is a slice of every
partial result and an addition in each part. The plan's transfers connect them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from situate.data.slices import Sums
from situate.torch_capture.cuts.writer import Writer
from situate.torch_capture.flow import APART
from situate.torch_capture.slices.sums import Sum

if TYPE_CHECKING:
    from torch import fx


@dataclass(frozen=True)
class Division:
    """A division of a tensor's dimension into parts.

    The dimension has `outer` ranges of equal length, each of which is divided alike.

    Attributes:
        bounds: the begin of each part within a range, and the end of the last.
    """

    dim: int
    outer: int
    bounds: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of parts."""
        return len(self.bounds) - 1

    def of_part(self, number: int) -> tuple[int, int]:
        """The begin and the end of a part within each range."""
        return self.bounds[number], self.bounds[number + 1]


class Value:
    """An output of an op, in all forms in which others read it.

    Args:
        writer: of the step.
        like: the node that computes it in the step before the cut.
        sums: the order in which partial results are added up.
        whole: the value itself, if it is whole.
        parts: its parts and their division, if it is in parts.
        partial: the summands, if it is a sum.
    """

    def __init__(
        self,
        writer: Writer,
        like: fx.Node,
        sums: Sums,
        *,
        whole: fx.Node | None = None,
        parts: tuple[Division, Sequence[fx.Node]] | None = None,
        partial: Sequence[fx.Node] = (),
    ) -> None:
        self._writer, self._like, self._order = writer, like, sums
        self.is_whole, self.parts, self.partial = whole is not None, parts, tuple(partial)
        self._whole: dict[int | None, fx.Node] = {} if whole is None else {None: whole}
        self._pieces: dict[tuple[Division, int], fx.Node] = {}
        if parts is not None:
            self._pieces = {(parts[0], i): node for i, node in enumerate(parts[1])}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole."""
        if self.parts is None:
            node = self.partial[0] if self.partial else self._whole[None]
            return tuple(node.meta["val"].shape)
        division, nodes = self.parts
        sizes = list(nodes[0].meta["val"].shape)
        # A part has `outer` ranges; the last bound is the length of a whole range.
        sizes[division.dim] = division.outer * division.bounds[-1]
        return tuple(sizes)

    def whole(self, reader: int | None = None) -> fx.Node:
        """The whole value, for a part that reads it. Each such part makes its own, so that it can
        be on any device."""
        if self.is_whole:
            return self._whole[None]
        if reader not in self._whole:
            self._whole[reader] = self._gathered(reader)
        return self._whole[reader]

    def nearest(self, part: int) -> fx.Node:
        """Some entries of the value, of a part itself if it has any; for ops that read none."""
        nodes = self.partial if self.parts is None else self.parts[1]
        return nodes[part] if part < len(nodes) else self.whole(part)

    def piece(self, division: Division, number: int) -> fx.Node:
        """A part of the value."""
        key = division, number
        if key not in self._pieces:
            self._pieces[key] = self._new_piece(division, number)
        return self._pieces[key]

    def _gathered(self, reader: int | None) -> fx.Node:
        if self.parts is not None:
            division = self.parts[0]
        elif reader is None or (scattered := self._scattering()) is None:
            return self._total(list(self.partial), None)
        else:
            division = scattered
        pieces = [self.piece(division, i) for i in range(division.count)]
        return self._joined(pieces, division, reader)

    def _scattering(self) -> Division | None:
        """The division in which partial results are added up before all parts read the whole."""
        count = len(self.partial)
        dim, size = max(enumerate(self.shape), key=lambda pair: pair[1], default=(0, 0))
        if size < count:
            return None
        return Division(dim, 1, tuple(round(i * size / count) for i in range(count + 1)))

    def _new_piece(self, division: Division, number: int) -> fx.Node:
        begin_end = division.of_part(number)
        if self.partial:
            addends = [
                self._sliced(node, division, begin_end, i) for i, node in enumerate(self.partial)
            ]
            return self._total(addends, number)
        if self.is_whole:
            return self._sliced(self._whole[None], division, begin_end, None)
        assert self.parts is not None
        own, nodes = self.parts
        # Along another dimension each part has a piece of the new part.
        if own.dim != division.dim:
            pieces = [self._sliced(n, division, begin_end, i) for i, n in enumerate(nodes)]
            return self._joined(pieces, own, number)
        # Ranges of other lengths have no pieces in common.
        if own.outer != division.outer or own.bounds[-1] != division.bounds[-1]:
            return self._sliced(self.whole(number), division, begin_end, number)
        return self._joined(self._overlaps(division, number), division, number)

    def _overlaps(self, division: Division, number: int) -> list[fx.Node]:
        """The pieces of the value's own parts that lie in a part of another division."""
        assert self.parts is not None
        own, nodes = self.parts
        low, high = division.of_part(number)
        pieces = []
        for i, (begin, end) in enumerate(pairwise(own.bounds)):
            first, last = max(low, begin), min(high, end)
            if first < last:
                local = Division(own.dim, own.outer, (0, end - begin))
                pieces.append(self._sliced(nodes[i], local, (first - begin, last - begin), i))
        return pieces

    def _sliced(
        self, node: fx.Node, division: Division, begin_end: tuple[int, int], part: int | None
    ) -> fx.Node:
        """A copy of a range of entries, so that no more than these are sent to other devices."""
        import torch

        aten, (begin, end) = torch.ops.aten, begin_end
        sizes = tuple(node.meta["val"].shape)
        span = sizes[division.dim] // division.outer
        if (begin, end) == (0, span):
            return node
        dim, outer = division.dim, division.outer
        if outer > 1:
            split = (*sizes[:dim], outer, span, *sizes[dim + 1 :])
            node = self._call(aten.view.default, (node, split), part)
        # The dimension that counts ranges is before the divided one.
        part_slice = self._call(aten.slice.Tensor, (node, dim + (outer > 1), begin, end), part)
        options = {"memory_format": torch.contiguous_format}
        copy = self._call(aten.clone.default, (part_slice,), part, options)
        copy.meta[APART] = True
        if outer > 1:
            merged = (*sizes[:dim], outer * (end - begin), *sizes[dim + 1 :])
            copy = self._call(aten.view.default, (copy, merged), part)
        return copy

    def _joined(self, pieces: Sequence[fx.Node], division: Division, part: int | None) -> fx.Node:
        """The concatenation of pieces along a divided dimension."""
        import torch

        if len(pieces) == 1:
            return pieces[0]
        aten, dim, outer = torch.ops.aten, division.dim, division.outer
        if outer == 1:
            return self._call(aten.cat.default, (list(pieces), dim), part)
        split = []
        for piece in pieces:
            sizes = tuple(piece.meta["val"].shape)
            ranges = (*sizes[:dim], outer, sizes[dim] // outer, *sizes[dim + 1 :])
            split.append(self._call(aten.view.default, (piece, ranges), part))
        whole = self._call(aten.cat.default, (split, dim + 1), part)
        sizes = tuple(whole.meta["val"].shape)
        merged = (*sizes[:dim], outer * sizes[dim + 1], *sizes[dim + 2 :])
        return self._call(aten.view.default, (whole, merged), part)

    def _total(self, addends: Sequence[fx.Node], part: int | None) -> fx.Node:
        import torch

        add = torch.ops.aten.add.Tensor
        total = Sum(lambda one, other: self._call(add, (one, other), part), self._order)
        for addend in addends:
            total.add(addend)
        return total.total()

    def _call(
        self, target: Any, args: tuple[Any, ...], part: int | None, options: Any = None
    ) -> fx.Node:
        return self._writer.call(self._like, target, args, part, options)
