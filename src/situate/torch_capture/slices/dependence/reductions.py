"""Operators that combine all numbers along some dimensions, or relate them to one another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from situate.torch_capture.nodes import operator_name
from situate.torch_capture.slices.dependence.operator_call import Call, Relations
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    Reason,
    Relation,
    Unrelated,
    common,
    reduced,
)

if TYPE_CHECKING:
    from torch import fx

ADDING = frozenset({"sum", "mean", "nansum"})
"""Reductions that are linear."""

REDUCTIONS = ADDING | frozenset(
    {"amax", "amin", "any", "all", "prod", "var", "std", "var_mean", "std_mean", "max", "min"}
    | {"linalg_vector_norm", "norm", "logsumexp", "argmax", "argmin", "median", "nanmedian"}
    | {"aminmax", "count_nonzero", "mode", "kthvalue", "trace"}
)

HOMOGENEOUS = ADDING | {"amax", "amin", "linalg_vector_norm", "norm", "aminmax", "max", "min"}
"""Reductions f with f(c x) = c f(x) for c > 0, in their first result."""

ALONG = frozenset(
    {"_softmax", "_log_softmax", "_safe_softmax", "cumsum", "cumprod", "logcumsumexp", "cummax"}
    | {"cummin", "sort", "topk", "_softmax_backward_data", "_log_softmax_backward_data", "renorm"}
    | {"_fft_r2c", "_fft_c2r", "_fft_c2c", "glu", "glu_backward", "linalg_cross", "unfold_backward"}
)
"""Operators that relate numbers along a dimension, and keep the dimension."""

LINEAR_ALONG = frozenset(
    {"cumsum", "_fft_r2c", "_fft_c2r", "_fft_c2c", "_softmax_backward_data"}
    | {"_log_softmax_backward_data", "glu_backward", "unfold_backward"}
)
"""Such operators that are linear in their first tensor."""


def reduction(call: Call) -> Relations:
    """The relation of a reduction."""
    source = call.relation(call.first)
    if source.kind in ("places", "unknown"):
        raise Unrelated(Reason.PLACE)
    if source.kind == "by_sample" and kept_labels(call.node) is not None:
        # A count of labels is n, so W = v_s / r_s; `label_notes` warns if some are left out.
        return SHARED.with_power(-1)
    if source.kind == "reduced":
        if call.name in ADDING and call.has_equal_arguments:
            return source
        raise Unrelated(Reason.LOSS)
    if source.power not in (0, None) and call.name not in HOMOGENEOUS:
        raise Unrelated(Reason.NUMBER)
    power = source.power if call.name in HOMOGENEOUS else 0
    if source.kind == "shared":
        return _results(call, source.with_power(power))
    dims = call.dims(_dims_argument(call), len(call.shape(call.first)))
    if source.axis in dims:
        return _results(call, _over_samples(call, source))
    keeps = bool(call.arguments.get("keepdim"))
    axis = source.axis if keeps else source.axis - sum(dim < source.axis for dim in dims)
    return _results(call, call.check_grows(replace(source, axis=axis, power=power)))


def kept_labels(node: fx.Node) -> tuple[fx.Node, int] | None:
    """The labels that a sum counts and the label that it leaves out, as in `(y != -100).sum()`;
    None for any other op."""
    if operator_name(node) != "sum" or len(node.args) != 1:
        return None
    mask: Any = node.args[0]
    while mask.op == "call_function" and operator_name(mask) in ("_to_copy", "view", "reshape"):
        mask = mask.args[0]
    is_inverse = operator_name(mask) in ("bitwise_not", "logical_not")
    comparison: Any = mask.args[0] if is_inverse else mask
    if operator_name(comparison) != ("eq" if is_inverse else "ne"):
        return None
    labels, ignored = comparison.args
    is_label = isinstance(ignored, int) and not labels.meta["val"].is_floating_point()
    return (labels, ignored) if is_label else None


def _results(call: Call, first: Relation) -> Relations:
    """The relations of all results: numbers in the first, and places along the dimension in the
    others, as of maxima."""
    others = first if call.name == "aminmax" else first.with_power(0)
    return (first, *(others for _ in call.shapes[1:]))


def _dims_argument(call: Call) -> str:
    return "dims" if "dims" in call.arguments else "dim"


def _over_samples(call: Call, source: Relation) -> Relation:
    if call.name == "count_nonzero":
        return reduced(0)
    if source.uniform and call.name in ("mean", "amax", "amin", "sum"):
        # A value that all samples share; a sum counts it once a sample.
        power = source.power
        # W = n x and v_s = n_s x, so W = v_s / r_s.
        if call.name == "sum" and power is not None:
            power -= 1
        return Relation("shared", power)
    # A maximum over slices is not a sum of the slices' maxima.
    if call.name not in ADDING:
        raise Unrelated(Reason.TOGETHER)
    if source.power is None or call.name != "mean":
        return reduced(source.power)
    # W = sum_s r_s mean_s.
    return reduced(source.power + 1)


def along(call: Call) -> Relations:
    """The relation of an operator along a dimension."""
    source = call.relation(call.first)
    if source.kind in ("places", "unknown"):
        raise Unrelated(Reason.PLACE)
    linear = call.name in LINEAR_ALONG
    if source.kind == "reduced":
        # Softmax's gradient multiplies with another tensor that it reads.
        if linear and call.has_equal_arguments and len(call.node.all_input_nodes) == 1:
            return (source,) * len(call.shapes)
        raise Unrelated(Reason.LOSS)
    if source.kind == "shared":
        return _of_shared(call, source.with_power(source.power if linear else 0))
    if source.power not in (0, None) and not linear:
        raise Unrelated(Reason.NUMBER)
    rank = len(call.shape(call.first))
    argument = next((n for n in ("dim", "dims", "dimension") if n in call.arguments), "dim")
    # `renorm` looks along all dimensions but the one that it names.
    if (source.axis in call.dims(argument, rank)) != (call.name == "renorm"):
        raise Unrelated(Reason.PAIRS)
    batch = common(call.inputs)
    result = replace(batch, power=source.power if linear else 0, uniform=False)
    return tuple(call.check_grows(result, k) for k in range(len(call.shapes)))


def _of_shared(call: Call, source: Relation) -> Relations:
    """The relations if the first tensor, such as a gradient, is shared."""
    batch = common(call.inputs, otherwise=source)
    if batch is source:
        return (source,) * len(call.shapes)
    result = replace(batch, power=source.power, uniform=False)
    return tuple(call.check_grows(result, k) for k in range(len(call.shapes)))
