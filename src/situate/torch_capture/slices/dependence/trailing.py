"""Operators that relate the numbers of a few trailing dimensions, and treat all leading indices
alike: convolution, pooling, interpolation, attention, linear algebra, normalisation."""

from __future__ import annotations

import re
from dataclasses import replace

from situate.torch_capture.slices.dependence.operator_call import Call, Relations
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    Reason,
    Relation,
    Unrelated,
    common,
    reduced,
)

SPATIAL = re.compile(
    r"^_?(adaptive_)?(avg_pool|max_pool|max_unpool|fractional_max_pool|upsample_|reflection_pad|"
    r"replication_pad|lp_pool).*?(?P<dims>[123])d"
)
"""Names of operators that relate the number of trailing dimensions in the name."""

CHANNELS = re.compile(
    r"^_?(convolution|grid_sampler|pixel_|channel_shuffle|im2col|col2im|native_group_norm|"
    r"scaled_dot_product|flash_attention|efficient_attention|affine_grid|slow_conv|conv_depthwise|"
    r"thnn_conv|mkldnn_convolution|conv)"
)
"""Names of operators that take samples along their first dimension alone."""

MATRICES = re.compile(r"^_?(linalg_|cholesky|cdist_|matrix_exp|lu_|triangular_solve|ormqr|det)")
"""Names of operators on the matrices in the last two dimensions."""

OF_BATCHES = re.compile(r"(interpolate|upsample)")
"""Names of situate's own operators that take samples along their first dimension."""

LINEAR = re.compile(r"(_backward|^_?(adaptive_)?avg_pool|upsample|_pad|pixel_|im2col|col2im)")
"""Names of operators that are linear in their first tensor."""


def trailing_dims(call: Call) -> int | None:
    """The number of trailing dimensions that an operator relates; None for all other operators."""
    name = call.name
    rank = len(call.shape(call.node.all_input_nodes[0]))
    if name.removesuffix("_backward") in ("native_layer_norm", "_fused_rms_norm"):
        return len(call.arguments["normalized_shape"])
    if spatial := SPATIAL.match(name):
        return int(spatial["dims"])
    if CHANNELS.match(name) or OF_BATCHES.search(name):
        return rank - 1
    return 2 if MATRICES.match(name) else None


def is_grouped(call: Call) -> bool:
    """True for a convolution in which each sample's channels are a group, so that every sample has
    its own kernel."""
    if call.name not in ("convolution", "convolution_backward"):
        return False
    groups = call.arguments["groups"], call.whole_arguments["groups"]
    return bool(groups[0] * call.ratio == groups[1] != groups[0])


def trailing(call: Call, dims: int) -> Relations:
    """The relation of an operator that relates so many trailing dimensions.

    Results without samples are gradients of weights, which add up over the samples.
    """
    if any(relation.kind == "reduced" for relation in call.inputs):
        together = any(relation.kind == "by_sample" for relation in call.inputs) or call.growing[0]
        raise Unrelated(Reason.TOGETHER if together else Reason.LOSS)
    batch = common(call.inputs, otherwise=SHARED)
    if batch is SHARED:
        return tuple(_of_shared(call, k) for k in range(len(call.shapes)))
    # The samples lie among the dimensions that the operator mixes.
    if batch.axis >= _leading(call, dims):
        raise Unrelated(Reason.PAIRS)
    power, result = _power(call), replace(batch, uniform=False)
    return tuple(_result(call, k, result, power) for k in range(len(call.shapes)))


def _leading(call: Call, dims: int) -> int:
    """The number of leading dimensions of the first tensor by sample."""
    sources = call.node.all_input_nodes
    first = next(source for source in sources if call.relation(source).kind == "by_sample")
    return len(call.shape(first)) - dims


def _of_shared(call: Call, k: int) -> Relation:
    if call.growing[k] or not call.has_equal_arguments:
        raise Unrelated(Reason.UNPROVED)
    if any(relation.power not in (0, None) for relation in call.inputs):
        raise Unrelated(Reason.NUMBER)
    return SHARED


def _power(call: Call) -> int | None:
    first, *others = call.inputs
    if any(other.power for other in others):
        raise Unrelated(Reason.NUMBER)
    if first.power not in (0, None) and not LINEAR.search(call.name):
        raise Unrelated(Reason.NUMBER)
    return first.power if LINEAR.search(call.name) else 0


def _result(call: Call, k: int, batch: Relation, power: int | None) -> Relation:
    if call.growing[k] != ():
        return call.check_grows(batch.with_power(power), k)
    if call.name.endswith("_backward"):
        return reduced(power)
    # Seeds and the like, which no gradient flows through.
    return SHARED


def grouped(call: Call) -> Relations:
    """The relations of such a convolution, whose samples lie along its channels, and along the
    first dimension of its kernels."""
    expected = {"input": 1, "weight": 0, "bias": 0, "grad_output": 1}
    for name, axis in expected.items():
        if call.arguments.get(name) is not None:
            relation = call.relation(call.arguments[name])
            if relation.kind != "by_sample" or (relation.axis, relation.blocks) != (axis, 1):
                raise Unrelated(Reason.PAIRS)
    power = _power(call)
    # The backward pass returns gradients of the input, the kernels and the bias.
    axes = (1,) if call.name == "convolution" else (1, 0, 0)
    return tuple(
        call.check_grows(Relation("by_sample", power, axis), k)
        for k, axis in zip(range(len(call.shapes)), axes, strict=False)
    )
