"""Views and copies: the samples of a tensor in another shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from situate.torch_capture.slices.dependence.operator_call import Call, Relations, shapes
from situate.torch_capture.slices.dependence.relation import (
    Reason,
    Relation,
    Unrelated,
    by_sample,
    common,
    one_power,
    reduced,
)

RESHAPES = frozenset(
    {"view", "_unsafe_view", "reshape", "_reshape_alias", "squeeze", "unsqueeze", "flatten"}
    | {"unflatten", "view_as_real", "view_as_complex", "real", "imag"}
)
"""Operators that keep all numbers in their order."""


RANGES = frozenset(
    {"slice", "narrow", "split", "split_with_sizes", "chunk", "unsafe_split", "expand", "repeat"}
    | {"slice_backward", "slice_scatter"}
)
"""Operators whose numbers follow the size of a dimension, and are examined one by one."""


def view(call: Call) -> Relations:
    """The relation of a view or a copy of one tensor."""
    source = call.relation(call.first)
    replacement = _replacement(call)
    if source.kind in ("shared", "reduced") and replacement is not None:
        return _together(call, [source, replacement])
    if source.kind == "shared":
        return _expanded(call, source)
    if source.kind == "reduced":
        return _of_equal_arguments(call, source)
    if source.kind in ("places", "unknown"):
        raise Unrelated(Reason.PLACE)
    if call.name in RESHAPES:
        return _reshaped(call, source)
    if call.name not in RANGES:
        call.check_numbers()
    return _BY_SAMPLE[call.name](call, source)


def joined(call: Call) -> Relation:
    """The relation of `cat` and `stack`."""
    sources = [call.relation(source) for source in call.first]
    rank = len(call.shape())
    axis = call.arguments["dim"] % rank
    if all(source.kind in ("shared", "reduced") for source in sources):
        return _together(call, sources)
    stacked = call.name == "stack"
    power = one_power(source.power for source in sources if source.kind != "shared")
    batch = common(sources).with_power(power)
    if not stacked and axis == batch.axis:
        return _concatenated(call, sources, batch)
    if any(source.kind == "shared" and source.power not in (0, None) for source in sources):
        raise Unrelated(Reason.NUMBER)
    # A stack adds its dimension at `axis`, which moves later dimensions by one.
    moved = batch.axis + (stacked and axis <= batch.axis)
    return call.check_grows(replace(batch, axis=moved, uniform=False))


def _replacement(call: Call) -> Relation | None:
    """The relation of the tensor that replaces a part, or of the number that pads; None for other
    views."""
    if call.name in ("slice_scatter", "select_scatter"):
        return call.relation(call.arguments["src"])
    is_filled = call.name == "constant_pad_nd" and call.arguments.get("value")
    return call.number("value") if is_filled else None


def _together(call: Call, sources: Sequence[Relation]) -> Relation:
    """The relation of shared values and sums over samples beside one another."""
    if call.growing[0] != () or not {source.kind for source in sources} <= {"shared", "reduced"}:
        raise Unrelated(Reason.PLACE)
    if not call.has_equal_arguments:
        raise Unrelated(Reason.NUMBER)
    if all(source.kind == "shared" for source in sources):
        return Relation("shared", one_power(source.power for source in sources))
    return reduced(one_power((source.summed().power for source in sources), Reason.POWERS))


def _concatenated(call: Call, sources: Sequence[Relation], batch: Relation) -> Relation:
    """The relation of tensors that are joined along their samples: each adds its blocks."""
    lengths = {call.shape(source)[batch.axis] for source in call.first}
    if any(s.kind != "by_sample" for s in sources) or len(lengths) > 1:
        raise Unrelated(Reason.PAIRS)
    return replace(batch, blocks=batch.blocks * len(sources), uniform=False)


def _reshaped(call: Call, source: Relation, k: int = 0) -> Relation:
    """The relation of a result that holds all numbers of a tensor by sample in their order.

    Row by row, O numbers come before the samples. In the new shape the dimensions before the
    samples' hold P of them, so O / P blocks remain in the samples' dimension.
    """
    before = call.shape(call.first)
    after, whole = call.shapes[k], list(shapes(call.whole))[k]
    dims = call.growing[k]
    outer = prod(before[: source.axis]) * source.blocks
    if len(dims) != 1 or len(after) != len(whole) or after[dims[0]] * call.ratio != whole[dims[0]]:
        raise Unrelated(Reason.VIEW)
    axis = dims[0]
    blocks, remainder = divmod(outer, prod(after[:axis]))
    if remainder or not blocks or after[axis] % blocks:
        raise Unrelated(Reason.VIEW)
    # Equal entries stay equal only if the view leaves the samples' dimension as it is.
    keeps = (before[source.axis], prod(before[: source.axis])) == (after[axis], prod(after[:axis]))
    same = source.uniform and keeps
    return by_sample(axis, source.power, 1 if same else blocks, same)


def _expanded(call: Call, source: Relation) -> Relation:
    """The relation of a view of a shared value, which may repeat it for every sample."""
    if call.growing[0] == ():
        if not call.has_equal_arguments:
            raise Unrelated(Reason.NUMBER)
        return source
    if call.name in ("expand", "repeat") and len(call.growing[0]) == 1:
        axis = call.growing[0][0]
        own = axis - (len(call.shape()) - len(call.shape(call.first)))
        uniform = own < 0 or call.shape(call.first)[own] == 1
        # A repetition for each sample, of all that there is along the dimension.
        if uniform or call.name == "repeat":
            return call.check_grows(by_sample(axis, source.power, uniform=uniform))
    raise Unrelated(Reason.PLACE)


def _of_equal_arguments(call: Call, source: Relation) -> Relation:
    if call.growing[0] != ():
        raise Unrelated(Reason.TOGETHER)
    if not call.has_equal_arguments:
        raise Unrelated(Reason.NUMBER)
    return source


def _permuted(call: Call, source: Relation) -> Relation:
    rank = len(call.shape(call.first))
    order = list(range(rank))
    if call.name == "permute":
        order = [i % rank for i in call.arguments["dims"]]
    elif call.name == "t":
        order.reverse()
    else:
        one, other = (call.arguments[name] % rank for name in ("dim0", "dim1"))
        order[one], order[other] = order[other], order[one]
    return replace(source, axis=order.index(source.axis))


def _repeated(call: Call, source: Relation) -> Relation:
    # Both operators add new dimensions in front; each repetition is a block with all samples.
    added = len(call.shape()) - len(call.shape(call.first))
    axis = source.axis + added
    times = call.shape()[axis] // call.shape(call.first)[source.axis]
    return call.check_grows(replace(source, axis=axis, blocks=source.blocks * times))


def _selected(call: Call, source: Relation) -> Relation:
    axis = call.arguments["dim"] % call.rank("self")
    if axis == source.axis:
        raise Unrelated(Reason.PLACE)
    return _unbound(source, axis)


def _sliced(call: Call, source: Relation) -> Relation:
    """The relation of a range along a dimension. Along the samples, it must take whole blocks, or
    every k-th sample."""
    rank = call.rank("self")
    axis = call.arguments["dim"] % rank
    if axis != source.axis:
        _check_range(call)
        return source
    ours = _range(call.arguments, call.shape(call.first)[axis])
    theirs = _range(call.whole_arguments, call.shape(call.whole.all_input_nodes[0])[axis])
    return _part(call, source, ours, theirs)


def _check_range(call: Call) -> None:
    """Refuse a range of features that changes with the size of the batch."""
    if not call.same("start", "end", "step", "length"):
        raise Unrelated(Reason.NUMBER)


def _range(arguments: dict[str, Any], size: int) -> tuple[int, int, int, int]:
    """Start, end, step and size of a slice along a dimension."""
    if "length" in arguments:
        start = arguments["start"] % size if size else 0
        return start, start + arguments["length"], 1, size
    start, end, step = slice(arguments["start"], arguments["end"], arguments["step"]).indices(size)
    return start, end, step, size


def _part(
    call: Call,
    source: Relation,
    ours: tuple[int, int, int, int],
    theirs: tuple[int, int, int, int],
) -> Relation:
    start, end, step, size = ours
    whole_start, whole_end, whole_step, whole_size = theirs
    # Any range of equal entries of the right length is as good as another.
    if source.uniform and (end - start) * call.ratio == whole_end - whole_start:
        return source
    if (start, end, step) == (0, size, 1) and (whole_start, whole_end) == (0, whole_size):
        return source
    block, whole_block = size // source.blocks, whole_size // source.blocks
    if step == whole_step == 1 and not (start % block or end % block):
        first, last = start // block, end // block
        if (whole_start, whole_end) == (first * whole_block, last * whole_block):
            return replace(source, blocks=last - first)
    # Every step-th sample, where each slice begins with the first of a step.
    alike = step == whole_step and start == whole_start < step and source.blocks == 1
    if alike and (end, whole_end) == (size, whole_size) and size % step == 0:
        return source
    raise Unrelated(Reason.PLACE)


def _split(call: Call, source: Relation) -> tuple[Relation, ...]:
    """The relations of the parts along a dimension."""
    rank = call.rank("self")
    axis = call.arguments.get("dim", 0) % rank
    if axis != source.axis:
        result = source if call.name != "unbind" else _unbound(source, axis)
        return tuple(call.check_grows(result, k) for k in range(len(call.shapes)))
    if call.name == "unbind" or len(call.shapes) != len(list(shapes(call.whole))):
        raise Unrelated(Reason.PLACE)
    size, whole_size = (call.shape(n)[axis] for n in (call.first, call.whole.args[0]))  # type: ignore[arg-type]
    parts, at, whole_at = [], 0, 0
    for ours, theirs in zip(call.shapes, shapes(call.whole), strict=True):
        ends = at + ours[axis], whole_at + theirs[axis]
        part = (at, ends[0], 1, size), (whole_at, ends[1], 1, whole_size)
        parts.append(_part(call, source, *part))
        at, whole_at = ends
    return tuple(parts)


def _unbound(source: Relation, axis: int) -> Relation:
    return replace(source, axis=source.axis - (axis < source.axis))


def _kept_along(call: Call, source: Relation) -> Relation:
    """The relation of a permutation along dimensions, none of which may hold the samples."""
    rank = len(call.shape(call.first))
    argument = "dims" if "dims" in call.arguments else "dim"
    if source.axis in call.dims(argument, rank) and not source.uniform:
        raise Unrelated(Reason.PAIRS)
    return call.check_grows(source)


def _padded(call: Call, source: Relation) -> Relation:
    pad = call.arguments["pad"]
    # `pad` holds a pair of lengths for each dimension, beginning with the last.
    from_end = len(call.shape()) - 1 - source.axis
    if any(pad[2 * from_end : 2 * from_end + 2]):
        raise Unrelated(Reason.PLACE)
    return source if not call.arguments.get("value") else _power_zero(source)


def _triangle(call: Call, source: Relation) -> Relation:
    if source.axis >= len(call.shape()) - 2:
        raise Unrelated(Reason.PAIRS)
    return source


def _diagonal(call: Call, source: Relation) -> Relation:
    rank = len(call.shape(call.first))
    pair = {call.arguments["dim1"] % rank, call.arguments["dim2"] % rank}
    if source.axis in pair:
        raise Unrelated(Reason.PAIRS)
    # Both dimensions leave their places, and the diagonal becomes the last one.
    return replace(source, axis=source.axis - sum(dim < source.axis for dim in pair))


def _unfolded(call: Call, source: Relation) -> Relation:
    if call.arguments["dimension"] % call.rank("self") == source.axis:
        raise Unrelated(Reason.PAIRS)
    return call.check_grows(source)


def _gradient(call: Call, source: Relation) -> Relation:
    """The relation of the gradient of a range or a diagonal, which is zero elsewhere."""
    axes = call.growing[0]
    # The gradient has the input's dimensions, some of which the output lacks.
    if call.name == "select_backward":
        dim = call.arguments["dim"] % len(call.shape())
        source = replace(source, axis=source.axis + (dim <= source.axis))
    elif call.name == "diagonal_backward":
        pair = sorted(call.arguments[n] % len(call.shape()) for n in ("dim1", "dim2"))
        for dim in pair:
            source = replace(source, axis=source.axis + (dim <= source.axis))
    if axes != (source.axis,):
        raise Unrelated(Reason.PLACE)
    if call.name == "slice_backward" and call.arguments["dim"] % len(call.shape()) == source.axis:
        return _range_gradient(call, source)
    _check_range(call)
    return call.check_grows(source)


def _range_gradient(call: Call, source: Relation) -> Relation:
    size, whole_size = call.shape()[source.axis], next(shapes(call.whole))[source.axis]
    ours, theirs = _range(call.arguments, size), _range(call.whole_arguments, whole_size)
    # The gradient of every step-th sample, as in `_part`.
    begins_alike = ours[2] == theirs[2] > ours[0] == theirs[0]
    if begins_alike and ours[1] == size and theirs[1] == whole_size and not size % ours[2]:
        return call.check_grows(source)
    length = ours[1] - ours[0]
    # One of several blocks, as of the views of a batch.
    is_block = ours[2] == 1 and length and size % length == 0 and ours[0] % length == 0
    grown = ours[0] * call.ratio == theirs[0] and ours[1] * call.ratio == theirs[1]
    if is_block and grown:
        return call.check_grows(replace(source, blocks=source.blocks * (size // length)))
    raise Unrelated(Reason.PLACE)


def _scattered(call: Call, source: Relation) -> Relation:
    """The relation of a tensor in which a range, or a selection, is replaced."""
    other = call.relation(call.arguments["src"])
    axis = call.arguments["dim"] % len(call.shape())
    if axis == source.axis:
        raise Unrelated(Reason.PLACE)
    _check_range(call)
    is_selection = call.name == "select_scatter" and other.kind == "by_sample"
    moved = replace(other, axis=other.axis + (axis <= other.axis)) if is_selection else other
    batch = common([source, moved])
    power = one_power([source.power, other.power])
    return replace(batch, power=power, uniform=False)


def _power_zero(source: Relation) -> Relation:
    if source.power not in (0, None):
        raise Unrelated(Reason.NUMBER)
    return source.with_power(0)


_BY_SAMPLE: dict[str, Callable[[Call, Relation], Relations]] = {
    **dict.fromkeys(("permute", "t", "transpose"), _permuted),
    **dict.fromkeys(("expand", "repeat"), _repeated),
    **dict.fromkeys(("slice", "narrow"), _sliced),
    **dict.fromkeys(("split", "split_with_sizes", "chunk", "unbind", "unsafe_split"), _split),
    **dict.fromkeys(("flip", "roll", "rot90"), _kept_along),
    **dict.fromkeys(("slice_backward", "select_backward", "diagonal_backward"), _gradient),
    **dict.fromkeys(("slice_scatter", "select_scatter"), _scattered),
    **dict.fromkeys(("tril", "triu"), _triangle),
    "select": _selected,
    "constant_pad_nd": _padded,
    "diagonal": _diagonal,
    "unfold": _unfolded,
}

VIEWS = RESHAPES.union(_BY_SAMPLE)
"""Operators that `view` knows."""
