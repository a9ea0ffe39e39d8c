"""Letters of views, and of ops that only move entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise
from operator import mul
from typing import TYPE_CHECKING

from situate.torch_capture.cuts.letters import (
    Axis,
    Letter,
    arguments,
    operands,
    shape,
)
from situate.torch_capture.cuts.rules import slices
from situate.torch_capture.cuts.rules.slices import local_sizes, others
from situate.torch_capture.nodes import operator_name

if TYPE_CHECKING:
    from torch import fx


def _reshape(node: fx.Node) -> list[Letter]:
    """A letter for each common factor of the dimensions before and after."""
    before, after = shape(operands(node)[0]), shape(node)
    return [
        Letter(size, (one,), (other,), partial(local_sizes, "size", other, after))
        for size, one, other in factors(before, after)
        if size > 1
    ]


def factors(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[int, Axis, Axis]]:
    """The factors into which both shapes of the same entries divide: size, and axis in each.

    (6, 4) and (2, 12) have the factors 2, 3 and 4: (2 3) (4) becomes (2) (3 4).
    """
    if 0 in before:
        return
    ends = [list(accumulate(sizes, mul, initial=1)) for sizes in (before, after)]
    edges = sorted({*ends[0], *ends[1]})
    for low, high in pairwise(edges):
        # Where the borders of one shape do not divide those of the other, there is no factor.
        if high % low == 0:
            axes = [
                _axis_at(sizes, end, low, high)
                for sizes, end in zip((before, after), ends, strict=True)
            ]
            if axes[0] is not None and axes[1] is not None:
                yield high // low, axes[0], axes[1]


def _axis_at(sizes: Sequence[int], ends: Sequence[int], low: int, high: int) -> Axis | None:
    """The axis of the factor between two products of leading dimensions."""
    for d, size in enumerate(sizes):
        # Dimension d spans the leading products from begin to end; the factor is a part of it.
        begin, end = ends[d], ends[d + 1]
        if begin <= low and high <= end and size > 1 and low % begin == 0 and end % high == 0:
            return Axis(d, low // begin, end // high)
    return None


def _expand(node: fx.Node) -> list[Letter]:
    """A letter for each dimension; operands of size 1 are read whole."""
    own, out = shape(operands(node)[0]), shape(node)
    result = []
    for d, size in enumerate(out):
        at = d - (len(out) - len(own))
        axis = Axis(at) if at >= 0 and own[at] == size else None
        if size > 1:
            sizes = partial(local_sizes, "size", Axis(d), out)
            result.append(Letter(size, (axis,), (Axis(d),), sizes))
    return result


def _permute(node: fx.Node) -> list[Letter]:
    """A letter for each dimension of a permutation."""
    own = shape(operands(node)[0])
    order = _order(node, len(own))
    return [
        Letter(own[source], (Axis(source),), (Axis(d),))
        for d, source in enumerate(order)
        if own[source] > 1
    ]


def _order(node: fx.Node, dims: int) -> list[int]:
    """By dimension of the result, that of the operand."""
    options, order = arguments(node), list(range(dims))
    if "dims" in options:
        return [d % dims for d in options["dims"]]
    if dims > 1:
        one, other = (options.get(name, d) % dims for name, d in (("dim0", 0), ("dim1", 1)))
        order[one], order[other] = order[other], order[one]
    return order


def _squeeze(node: fx.Node) -> list[Letter]:
    """A letter for each dimension of more than one entry; the others come and go."""
    before, after = shape(operands(node)[0]), shape(node)
    here, there = ([d for d, size in enumerate(sizes) if size > 1] for sizes in (before, after))
    return [
        Letter(before[one], (Axis(one),), (Axis(other),))
        for one, other in zip(here, there, strict=True)
    ]


def _along(node: fx.Node) -> list[Letter]:
    """Letters of ops that work along one dimension, and on each of the others alike."""
    result = shape(node, 0) if not hasattr(node.meta["val"], "shape") else shape(node)
    x, count = operands(node)[0], _outputs(node)
    own = shape(x)
    if len(operands(node)) > 1 or not own:
        return []
    dim = arguments(node).get("dim", WITHOUT_DIM.get(operator_name(node), -1))
    # Without a dimension the op works on all entries in a row.
    return [] if dim is None else others(own, dim % len(own), len(result) == len(own), count)


WITHOUT_DIM = {"argmax": None, "argmin": None}
"""By operator, the dimension along which it works if none is named; otherwise the last."""


def _triangle(node: fx.Node) -> list[Letter]:
    """A letter for each dimension of a batch of matrices, whose entries depend on both of their
    places."""
    own = shape(node)
    return [Letter(n, (Axis(d),), (Axis(d),)) for d, n in enumerate(own[:-2]) if n > 1]


def _outputs(node: fx.Node) -> int:
    value = node.meta["val"]
    return len(value) if isinstance(value, (list, tuple)) else 1


def _cat(node: fx.Node) -> list[Letter]:
    """Letters of a concatenation, or of a stack along a new dimension."""
    parts, out = [shape(part) for part in operands(node)], shape(node)
    is_stack = "stack" in str(node.target)
    dim = arguments(node).get("dim", 0) % len(out)

    def axes(d: int) -> tuple[Axis | None, ...]:
        # PyTorch lets tensors of shape (0,) take part in any concatenation.
        return tuple(None if part == (0,) else Axis(d) for part in parts)

    result = [
        Letter(size, axes(d - (is_stack and d > dim)), (Axis(d),))
        for d, size in enumerate(out)
        if d != dim and size > 1
    ]
    lengths = {part[dim] for part in parts if part != (0,)} if not is_stack else set()
    if len(lengths) == 1 and (0,) not in parts and (length := lengths.pop()) > 1:
        # Equal parts make the dimension so many ranges, each of which is cut.
        result.append(Letter(length, axes(dim), (Axis(dim, outer=len(parts)),)))
    return result


def _pad(node: fx.Node) -> list[Letter]:
    """A letter for each dimension that is not padded."""
    before, after = shape(operands(node)[0]), shape(node)
    return [
        Letter(size, (Axis(d),), (Axis(d),))
        for d, (size, other) in enumerate(zip(before, after, strict=True))
        if size == other and size > 1 and 2 * (len(before) - d) > len(arguments(node)["pad"])
    ]


def _flip(node: fx.Node) -> list[Letter]:
    """A letter for each dimension that is not reversed or rolled."""
    own = shape(node)
    moved = {d % len(own) for d in arguments(node).get("dims", range(len(own)))}
    return [
        Letter(size, (Axis(d),), (Axis(d),))
        for d, size in enumerate(own)
        if size > 1 and d not in moved
    ]


Rule = Callable[["fx.Node"], "list[Letter]"]

RULES: dict[str, Rule] = {
    **dict.fromkeys(("view", "_unsafe_view", "reshape", "view_copy"), _reshape),
    **dict.fromkeys(("t", "transpose", "permute", "numpy_T"), _permute),
    **dict.fromkeys(("squeeze", "unsqueeze"), _squeeze),
    **slices.RULES,
    **dict.fromkeys(("cat", "stack"), _cat),
    **dict.fromkeys(("flip", "roll"), _flip),
    **dict.fromkeys(("cumsum", "cumprod", "sort", "topk"), _along),
    **dict.fromkeys(("argmax", "argmin", "argsort", "cummax"), _along),
    **dict.fromkeys(("tril", "triu"), _triangle),
    "expand": _expand,
    "constant_pad_nd": _pad,
}

LINEAR = frozenset(
    {
        *("view", "_unsafe_view", "reshape", "t", "transpose", "permute", "squeeze", "unsqueeze"),
        *("expand", "slice", "select", "detach", "alias"),
    }
)
"""Views of one operand, which move the parts of a sum as they move the sum."""
