"""Letters of sums and other reductions, of softmax, and of norms over the last dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from situate.torch_capture.cuts.letters import (
    Axis,
    Letter,
    Output,
    arguments,
    operands,
    shape,
)

if TYPE_CHECKING:
    from torch import fx


def _reduction(node: fx.Node, sums: bool = False) -> list[Letter]:
    """A letter for each dimension that stays, and of a sum also for each that goes."""
    x, *others = operands(node)
    if others or not shape(x):
        return []
    own, value = shape(x), node.meta["val"]
    outputs = len(value) if isinstance(value, (list, tuple)) else 1
    dims, keeps = _dims(node, len(own)), bool(arguments(node).get("keepdim", False))
    remaining = [d for d in range(len(own)) if keeps or d not in dims]
    result = [
        Letter(own[d], (Axis(d),), (Axis(at),) * outputs)
        for at, d in enumerate(remaining)
        if d not in dims and own[d] > 1
    ]
    contracted = (Letter(own[d], (Axis(d),), ("sum",)) for d in sorted(dims) if own[d] > 1)
    return [*result, *(contracted if sums else ())]


def _dims(node: fx.Node, count: int) -> set[int]:
    dims = arguments(node).get("dim")
    if dims is None or dims == []:
        return set(range(count))
    return {d % count for d in ([dims] if isinstance(dims, int) else dims)}


def softmax(node: fx.Node) -> list[Letter]:
    """A letter for each dimension but that of the softmax; the same for its gradient."""
    own, dim = shape(node), arguments(node)["dim"] % len(shape(node))
    count = len(operands(node))
    return [
        Letter(size, (Axis(d),) * count, (Axis(d),))
        for d, size in enumerate(own)
        if d != dim and size > 1
    ]


def _layer_norm(node: fx.Node) -> list[Letter]:
    """A letter for each dimension that is not normalised; statistics keep these dimensions."""
    x, *weights = operands(node)
    own, count = shape(x), len(node.meta["val"])
    outer = len(own) - len(arguments(node)["normalized_shape"])
    return [
        Letter(own[d], (Axis(d), *(None,) * len(weights)), (Axis(d),) * count)
        for d in range(outer)
        if own[d] > 1
    ]


def _layer_norm_backward(node: fx.Node) -> list[Letter]:
    """As the norm; gradients of weight and bias are sums over these dimensions.

    Operands: the gradient, the input, mean and inverse deviation, and weights.
    """
    gradient, *rest = operands(node)
    own, values = shape(gradient), node.meta["val"]
    outer = len(own) - len(arguments(node)["normalized_shape"])
    weights = (None,) * (len(rest) - 3)
    result = []
    for d in range(outer):
        sums: list[Output] = ["sum"] * (len(values) - 1)
        outputs: list[Output] = [Axis(d), *sums]
        present = tuple(o if v is not None else None for o, v in zip(outputs, values, strict=True))
        if own[d] > 1:
            axes = (Axis(d),) * 4
            result.append(Letter(own[d], (*axes, *weights), present))
    return result


Rule = Callable[[Any], list[Letter]]


def _names(names: Sequence[str], rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names, rule)


RULES: dict[str, Rule] = {
    "sum": partial(_reduction, sums=True),
    **_names(("mean", "amax", "amin", "var", "var_mean", "std", "prod", "any", "all"), _reduction),
    **_names(("max", "min", "logsumexp", "linalg_vector_norm"), _reduction),
    **_names(("_softmax", "_safe_softmax"), softmax),
    "_softmax_backward_data": softmax,
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
}
