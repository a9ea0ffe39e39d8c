"""Letters of convolutions, poolings, and norms of channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from situate.torch_capture.cuts.letters import (
    Axis,
    Letter,
    Local,
    Output,
    Piece,
    arguments,
    operands,
    shape,
)

if TYPE_CHECKING:
    from torch import fx

    from situate.torch_capture.cuts.writer import Writer


def _convolution(node: fx.Node) -> list[Letter]:
    """Operands: an input (n, c, ...), a weight (k, c / groups, ...), and a bias or not."""
    x, weight, *bias = map(shape, operands(node))
    options, rest = arguments(node), (None,) * len(bias)
    if options["transposed"]:
        return []
    letters = [Letter(x[0], (Axis(0), None, *rest), (Axis(0),), kind="batch")]
    if (groups := options["groups"]) > 1:
        letters.append(_groups(groups, x, weight, len(bias)))
    else:
        outputs = (None, Axis(0), *(Axis(0),) * len(bias))
        write = _once_biased if bias else None
        letters += [
            Letter(weight[0], outputs, (Axis(1),), kind="channels"),
            Letter(x[1], (Axis(1), Axis(1), *rest), ("sum",), write=write, kind="channels"),
        ]
    return [letter for letter in letters if letter.size > 1]


def _groups(groups: int, x: tuple[int, ...], weight: tuple[int, ...], bias: int) -> Letter:
    own, channels = Axis(1, inner=x[1] // groups), weight[0] // groups
    return Letter(
        groups,
        (own, Axis(0, inner=channels), *(Axis(0, inner=channels),) * bias),
        (Axis(1, inner=channels),),
        partial(_local_groups, ()),
        kind="channels",
    )


def _local_groups(
    named_sizes: Sequence[str], options: Mapping[str, Any], piece: Piece
) -> dict[str, Any]:
    return {"groups": piece.of(options["groups"])} | {
        name: [piece.of(size) for size in options[name]]
        for name in named_sizes
        if options.get(name)
    }


def _once_biased(writer: Writer, node: fx.Node, parts: Sequence[Local]) -> list[list[fx.Node]]:
    """The first part of a sum adds the bias."""
    results = []
    for part in parts:
        x, weight, bias, *options = part.args
        number = part.piece.number
        call = (x, weight, None if number else bias, *options)
        results.append(writer.call(node, node.target, call, number))
    return [results]


def _convolution_backward(node: fx.Node) -> list[Letter]:
    """Operands: the gradient (n, k, ...), the input and the weight; outputs: their gradients, and
    that of the bias."""
    gradient, x, weight = map(shape, operands(node))
    options = arguments(node)
    if options["transposed"]:
        return []

    def outputs(*entries: Output) -> tuple[Output, ...]:
        mask = options["output_mask"]
        return tuple(entry if needed else None for entry, needed in zip(entries, mask, strict=True))

    batch = (Axis(0), Axis(0), None)
    letters = [Letter(x[0], batch, outputs(Axis(0), "sum", "sum"), kind="batch")]
    if (groups := options["groups"]) > 1:
        inner = weight[0] // groups
        out, own = Axis(1, inner=inner), Axis(1, inner=x[1] // groups)
        row = Axis(0, inner=inner)
        sizes = partial(_local_groups, ("bias_sizes",))
        gradients = outputs(own, row, row)
        letters.append(Letter(groups, (out, own, row), gradients, sizes, kind="channels"))
    else:
        # Parts along output channels add up the input's gradient. Of parts along input channels,
        # one makes the bias's gradient, which does not depend on them.
        columns = outputs("sum", Axis(0), Axis(0))
        rows = outputs(Axis(1), Axis(1), "once")
        letters += [
            Letter(gradient[1], (Axis(1), None, Axis(0)), columns, _local_bias, kind="channels"),
            Letter(x[1], (None, Axis(1), Axis(1)), rows, write=_once_bias, kind="channels"),
        ]
    return [letter for letter in letters if letter.size > 1]


def _local_bias(options: Mapping[str, Any], piece: Piece) -> dict[str, Any]:
    sizes = options.get("bias_sizes")
    return {"bias_sizes": [piece.of(size) for size in sizes]} if sizes else {}


def _once_bias(writer: Writer, node: fx.Node, parts: Sequence[Local]) -> list[list[fx.Node]]:
    """Parts of the input's channels; the bias has none, so the first part computes its gradient."""
    calls = []
    for part in parts:
        *others, mask = part.args
        own = [*mask[:2], mask[2] and not part.piece.number]
        calls.append(writer.call(node, node.target, (*others, own), part.piece.number))
    results = [[writer.item(call, k) for call in calls] if mask[k] else [] for k in range(2)]
    return [*results, [writer.item(calls[0], 2)] if mask[2] else []]


def _pooling(node: fx.Node) -> list[Letter]:
    """Samples and channels of poolings and of interpolations, forward and backward."""
    tensors, value = [shape(x) for x in operands(node)], node.meta["val"]
    outputs = len(value) if isinstance(value, (list, tuple)) else 1
    out = shape(node)
    # Without a batch, the first dimension has the channels.
    leading = len(out) - 2
    return [
        Letter(out[d], (Axis(d),) * len(tensors), (Axis(d),) * outputs, kind=kind)
        for d, kind in ((leading - 2, "batch"), (leading - 1, "channels"))
        if d >= 0 and out[d] > 1
    ]


def _batch_norm(node: fx.Node) -> list[Letter]:
    """Channels: the input (n, c, ...) has them in dimension 1, all else in dimension 0."""
    tensors = [shape(x) for x in operands(node)]
    count = tensors[0][1]
    inputs = tuple(_channels(sizes) for sizes in tensors)
    values = node.meta["val"]
    outputs = tuple(None if v is None else _channels(tuple(v.shape), count) for v in values)
    has_all = all(axis is not None for axis in inputs)
    return [Letter(count, inputs, outputs, kind="channels")] if count > 1 and has_all else []


def _channels(sizes: tuple[int, ...], count: int = 0) -> Axis | None:
    """The axis of the channels; None for statistics that the kernel leaves empty."""
    if len(sizes) > 1:
        return Axis(1)
    return Axis(0) if sizes and (not count or sizes[0] == count) else None


Rule = Callable[[Any], list[Letter]]

RULES: dict[str, Rule] = {
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    **dict.fromkeys(
        (
            *("max_pool2d_with_indices", "max_pool2d_with_indices_backward"),
            *("avg_pool2d", "avg_pool2d_backward"),
            *("_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward"),
        ),
        _pooling,
    ),
    **dict.fromkeys(
        (
            *("_native_batch_norm_legit_functional", "_native_batch_norm_legit"),
            *("_native_batch_norm_legit_no_training", "native_batch_norm_backward"),
        ),
        _batch_norm,
    ),
}
