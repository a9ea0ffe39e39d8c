"""Letters of a cross entropy: the samples, and the classes (the vocabulary of a language model).

Where classes are cut, parts exchange a maximum and a sum for each sample instead of all logits
(Megatron-LM: Shoeybi et al., 2019, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from situate.torch_capture.cuts.letters import Axis, Letter, Local, arguments, operands, shape
from situate.torch_capture.cuts.rules.reductions import softmax
from situate.torch_capture.cuts.rules.tables import within

if TYPE_CHECKING:
    from torch import fx

    from situate.torch_capture.cuts.writer import Writer

REDUCTIONS = NONE, MEAN, SUM = range(3)
"""PyTorch's numbers of the reductions of a loss."""

OUTSIDE = -100
"""The target of a sample whose class lies in another part."""


def _log_softmax(node: fx.Node) -> list[Letter]:
    """The letters of a softmax, and the classes."""
    own, dim = shape(node), arguments(node)["dim"] % len(shape(node))
    if arguments(node).get("half_to_float", False):
        return softmax(node)
    classes = Letter(
        own[dim], (Axis(dim),), (Axis(dim),), write=_write_log_softmax, kind="vocabulary"
    )
    return [*softmax(node), classes]


def _log_softmax_backward(node: fx.Node) -> list[Letter]:
    """Operands: the gradient, and the output of the forward pass."""
    own, dim = shape(node), arguments(node)["dim"] % len(shape(node))
    if operands(node)[0].meta["val"].dtype != node.meta["val"].dtype:
        return softmax(node)
    axis = Axis(dim)
    classes = Letter(own[dim], (axis, axis), (axis,), write=_write_log_softmax_backward)
    return [*softmax(node), classes]


def _nll_loss(node: fx.Node) -> list[Letter]:
    """Operands: logarithms (n, classes) or (classes,), targets, and weights of classes or not."""
    x, _, *weights = map(shape, operands(node))
    if len(x) != 2:
        return []
    samples = Letter(x[0], (Axis(0), Axis(0), *(None,) * len(weights)), _results(node), write=_nll)
    classes = (Axis(1), None, *(Axis(0),) * len(weights))
    vocabulary = Letter(
        x[1], classes, _results(node), write=_nll, kind="vocabulary", is_numbered=True
    )
    is_reduced = arguments(node)["reduction"] != NONE
    return [letter for letter in (samples, vocabulary) if is_reduced and letter.size > 1]


def _results(node: fx.Node) -> tuple[Any, ...]:
    return ("once", "once") if arguments(node)["reduction"] == MEAN else ("sum", "sum")


def _nll_loss_backward(node: fx.Node) -> list[Letter]:
    """Operands: the gradient, logarithms (n, classes), targets, weights of classes or not, and the
    total weight."""
    gradient, x, _, *rest = map(shape, operands(node))
    if len(x) != 2 or gradient:
        return []
    weights, total = rest[:-1], (None,)
    samples = (None, Axis(0), Axis(0), *(None,) * len(weights), *total)
    classes = (None, Axis(1), None, *(Axis(0),) * len(weights), *total)
    return [
        *([Letter(x[0], samples, (Axis(0),))] if x[0] > 1 else []),
        Letter(x[1], classes, (Axis(1),), write=_nll_backward, kind="vocabulary", is_numbered=True),
    ]


def _write_log_softmax(
    writer: Writer, node: fx.Node, parts: Sequence[Local]
) -> list[list[fx.Node]]:
    """x - max(x) - log(sum(exp(x - max(x)))), with the maximum and the sum over all parts."""
    import torch

    aten, dim = torch.ops.aten, arguments(node)["dim"]
    own = [(part.piece.number, part.operands[0]) for part in parts]
    most = [writer.call(node, aten.amax.default, (x, [dim], True), i) for i, x in own]
    top = _folded(writer, node, aten.maximum.default, most)
    shifted = [writer.call(node, aten.sub.Tensor, (x, top), i) for i, x in own]
    powers = [writer.call(node, aten.exp.default, (x,), i) for i, x in enumerate(shifted)]
    sums = [
        writer.call(node, aten.sum.dim_IntList, (x, [dim], True), i) for i, x in enumerate(powers)
    ]
    total = _folded(writer, node, aten.add.Tensor, sums)
    logarithm = writer.call(node, aten.log.default, (total,), None)
    return [[writer.call(node, aten.sub.Tensor, (x, logarithm), i) for i, x in enumerate(shifted)]]


def _write_log_softmax_backward(
    writer: Writer, node: fx.Node, parts: Sequence[Local]
) -> list[list[fx.Node]]:
    """dy - exp(y) sum(dy), with the sum over all parts."""
    import torch

    aten, dim = torch.ops.aten, arguments(node)["dim"]
    own = [part.operands for part in parts]
    sums = [
        writer.call(node, aten.sum.dim_IntList, (dy, [dim], True), i)
        for i, (dy, _) in enumerate(own)
    ]
    total = _folded(writer, node, aten.add.Tensor, sums)
    results = []
    for i, (dy, y) in enumerate(own):
        power = writer.call(node, aten.exp.default, (y,), i)
        product = writer.call(node, aten.mul.Tensor, (power, total), i)
        results.append(writer.call(node, aten.sub.Tensor, (dy, product), i))
    return [results]


def _nll(writer: Writer, node: fx.Node, parts: Sequence[Local]) -> list[list[fx.Node]]:
    """Sums of losses and of weights; their quotient is the mean."""
    import torch

    options, aten = arguments(node), torch.ops.aten
    pairs = []
    for part in parts:
        x, target, *weights = part.operands
        number = part.piece.number
        target, ignored = _own_target(writer, node, part, (x, operands(node)[0]), target)
        call = (x, target, *(weights or (None,)), SUM, ignored)
        both = writer.call(node, node.target, call, number)
        pairs.append([writer.item(both, k) for k in range(2)])
    losses, totals = ([pair[k] for pair in pairs] for k in range(2))
    if options["reduction"] == SUM:
        return [losses, totals]
    loss, total = (_folded(writer, node, aten.add.Tensor, addends) for addends in (losses, totals))
    return [[writer.call(node, aten.div.Tensor, (loss, total), None)], [total]]


def _nll_backward(writer: Writer, node: fx.Node, parts: Sequence[Local]) -> list[list[fx.Node]]:
    results = []
    for part in parts:
        gradient, x, target, *rest = part.operands
        target, ignored = _own_target(writer, node, part, (x, operands(node)[1]), target)
        call = (
            gradient,
            x,
            target,
            *(rest[:-1] or (None,)),
            arguments(node)["reduction"],
            ignored,
            rest[-1],
        )
        results.append(writer.call(node, node.target, call, part.piece.number))
    return [results]


def _own_target(
    writer: Writer,
    node: fx.Node,
    part: Local,
    logarithms: tuple[fx.Node, fx.Node],
    target: fx.Node,
) -> tuple[fx.Node, int]:
    """The targets as classes of a part, and the number by which it ignores those of other parts.

    Args:
        logarithms: of the part, and of the whole op.
    """
    import torch

    ignored: int = arguments(node)["ignore_index"]
    own, whole = logarithms
    if shape(own)[1] == shape(whole)[1]:
        return target, ignored
    aten, number = torch.ops.aten, part.piece.number
    # An ignored class of the whole op could be a class of the part, so it becomes none.
    if ignored >= 0:
        is_ignored = writer.call(node, aten.eq.Scalar, (target, ignored), number)
        call = (target, is_ignored, OUTSIDE)
        target = writer.call(node, aten.masked_fill.Scalar, call, number)
    return within(writer, node, target, part, OUTSIDE)[0], OUTSIDE


def _folded(writer: Writer, node: fx.Node, op: Any, addends: Sequence[fx.Node]) -> fx.Node:
    """One value of all parts' values, in order."""
    return reduce(lambda one, other: writer.call(node, op, (one, other), None), addends)


RULES: dict[str, Callable[[Any], list[Letter]]] = {
    "_log_softmax": _log_softmax,
    "_log_softmax_backward_data": _log_softmax_backward,
    "nll_loss_forward": _nll_loss,
    "nll_loss_backward": _nll_loss_backward,
}
