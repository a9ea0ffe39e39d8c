"""Operators that compute every number of their result from one number of each input tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from situate.torch_capture.slices.dependence.operator_call import Call
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    Reason,
    Relation,
    Unrelated,
    by_sample,
    common,
    one_power,
    reduced,
)

IDENTITIES = frozenset(
    {"clone", "_to_copy", "detach", "alias", "lift_fresh_copy", "positive", "contiguous"}
)
"""Operators that change no number, except its dtype."""

SIGNED = IDENTITIES | {"neg", "conj", "_conj", "_conj_physical", "conj_physical"}
"""Operators that are linear in their only tensor."""

SCALED = SIGNED | {"relu", "abs", "leaky_relu", "_prelu_kernel", "maximum", "minimum", "fmax"}
"""Operators f with f(c x) = c f(x) for c > 0."""

SUMS = frozenset({"add", "sub", "rsub"})

FILLING = frozenset({"fill", "copy"})
"""Operators that write over all numbers of a tensor."""

CASTS = frozenset({"_to_copy", "copy"})
"""Operators whose result may have another dtype than their input."""

LOOKUPS = frozenset({"isin", "bucketize"})
"""Operators that read the whole second tensor for each number of the first."""

NUMBERS = (int, float, complex)
"""Types of numbers that are computed with."""

CHOICES = frozenset({"where", "masked_fill"})
"""Operators that take each number from one of two tensors, as a third one decides."""

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})

ALSO_POINTWISE = frozenset(
    {"elu_backward", "hardsigmoid_backward", "hardswish", "hardswish_backward", "prelu"}
    | {"hardtanh_backward", "leaky_relu_backward", "log_sigmoid_backward", "log_sigmoid_forward"}
    | {"mish_backward", "softplus_backward", "rrelu_with_noise_backward", "_prelu_kernel"}
    | {"_prelu_kernel_backward", "floor_divide", "complex", "polar", "isin", "bucketize"}
    | {"_conj", "_conj_physical", "conj", "special_ndtr", "fill", "isclose"}
    | {"_masked_scale", "detach", "alias", "_to_copy", "lift_fresh_copy", "clone", "copy"}
    | {"masked_fill", "fake_quantize_per_tensor_affine", "contiguous"}
)
"""Pointwise operators that PyTorch does not tag as such."""


def is_pointwise(target: Any, name: str) -> bool:
    """True for a pointwise operator."""
    import torch

    return torch.Tag.pointwise in getattr(target, "tags", ()) or name in ALSO_POINTWISE


def pointwise(call: Call) -> Relation:
    """The relation of a pointwise result."""
    operands = _operands(call)
    kinds = {relation.kind for relation, _ in operands}
    if "unknown" in kinds:
        raise Unrelated(Reason.NUMBER if _has_unknown_number(call) else Reason.PLACE)
    if "places" in kinds:
        if call.name in IDENTITIES:
            return operands[0][0]
        raise Unrelated(Reason.PLACE)
    if "reduced" in kinds:
        return _of_reduced(call, [relation for relation, _ in operands])
    power = _power(call, [relation for relation, _ in operands])
    if "by_sample" in kinds:
        return _aligned(call, operands, power)
    if len(call.growing[0]) == 1 and call.name in FILLING:
        return call.check_grows(by_sample(call.growing[0][0], power, uniform=True))
    if call.growing[0] != ():
        raise Unrelated(Reason.PLACE)
    return Relation("shared", power)


def _operands(call: Call) -> list[tuple[Relation, int]]:
    """The relation and the rank of each tensor or number that is computed with."""
    from torch import fx

    operands = []
    for name, value in call.arguments.items():
        if isinstance(value, fx.Node):
            operands.append((call.relation(value), len(call.shape(value))))
        elif type(value) in NUMBERS and name not in ("alpha", "dtype", "beta"):
            operands.append((call.number(name), 0))
        elif type(value) is bool and not call.same(name):
            raise Unrelated(Reason.NUMBER)
    if not call.same("alpha", "beta"):
        raise Unrelated(Reason.NUMBER)
    if call.name in LOOKUPS and any(relation != SHARED for relation, _ in operands[1:]):
        raise Unrelated(Reason.TOGETHER)
    # What is filled, or copied to, keeps nothing of its numbers.
    return operands[call.name in FILLING :]


def _has_unknown_number(call: Call) -> bool:
    numbers = (n for n, v in call.arguments.items() if type(v) in NUMBERS)
    return any(call.number(name).kind == "unknown" for name in numbers)


def _rounds(call: Call) -> bool:
    """True for a cast or copy to integers or booleans that changes numbers."""
    source = call.arguments["src"] if call.name == "copy" else call.first
    ours, theirs = call.node.meta["val"].dtype, source.meta["val"].dtype
    if ours.is_floating_point or ours.is_complex:
        return False
    return str(ours) == "torch.bool" or theirs.is_floating_point


def _aligned(call: Call, operands: Sequence[tuple[Relation, int]], power: int | None) -> Relation:
    """The relation of tensors whose samples lie along one dimension, counted from the last one, as
    in broadcasting."""
    rank = len(call.shape())
    batches = [
        replace(relation, axis=rank - own + relation.axis)
        for relation, own in operands
        if relation.kind == "by_sample"
    ]
    batch = common(batches)
    return call.check_grows(by_sample(batch.axis, power, batch.blocks, batch.uniform))


def _power(call: Call, operands: Sequence[Relation]) -> int | None:
    """The power of r_s in a pointwise result."""
    name = call.name
    powers = [relation.power for relation in operands]
    if name in CASTS and _rounds(call):
        return one_power([*powers, 0])
    if name == "mul":
        # Powers of factors add up: (r^a x)(r^b y) = r^(a+b) xy.
        return reduce(_times, powers)
    if name in ("div", "true_divide"):
        return _quotient(call, powers)
    # r^p x + r^p y = r^p (x + y), and f(r^p x) = r^p f(x) since r > 0.
    if name in SUMS or name in SCALED or name == "copy":
        return one_power(powers)
    if name in CHOICES:
        return _choice(call, powers)
    if name in COMPARISONS:
        # A positive factor common to both sides changes no comparison.
        one_power(powers)
        return 0
    # A gradient is linear in its first input, the gradient of the output.
    if name.endswith("_backward"):
        if any(powers[1:]):
            raise Unrelated(Reason.NUMBER)
        return powers[0]
    if name in ("pow", "square", "sqrt", "rsqrt", "reciprocal") and not any(powers[1:]):
        return _root(call, powers[0])
    if any(powers):
        raise Unrelated(Reason.NUMBER)
    return 0


def _quotient(call: Call, powers: Sequence[int | None]) -> int | None:
    if call.arguments.get("rounding_mode") is not None:
        # floor(r x) differs from r floor(x).
        return one_power([*powers, 0])
    if powers[0] is None:
        return None
    return powers[0] - (powers[1] or 0)


def _choice(call: Call, powers: Sequence[int | None]) -> int | None:
    # The place of the condition among the operands.
    at = 0 if call.name == "where" else 1
    if powers[at]:
        raise Unrelated(Reason.NUMBER)
    return one_power(power for k, power in enumerate(powers) if k != at)


def _root(call: Call, power: int | None) -> int | None:
    """The power of x^e for a number e."""
    exponents = {"square": 2, "sqrt": 0.5, "rsqrt": -0.5, "reciprocal": -1}
    exponent = exponents.get(call.name) or call.arguments.get("exponent")
    if power is None:
        # 0^e is 0 for e > 0, and zeros fit any power; for other e it is 1 or infinite.
        return None if isinstance(exponent, (int, float)) and exponent > 0 else 0
    if power == 0:
        return 0
    # Powers are integers, so sqrt(r x) has none.
    if not isinstance(exponent, (int, float)) or not float(power * exponent).is_integer():
        raise Unrelated(Reason.NUMBER)
    if not math.isclose(exponent, call.whole_arguments.get("exponent", exponent)):
        raise Unrelated(Reason.NUMBER)
    return int(power * exponent)


def _of_reduced(call: Call, operands: Sequence[Relation]) -> Relation:
    """The relation of a result computed from sums over samples, which pass through linear
    operators."""
    name = call.name
    # Beside sums, samples may only be zeros, which fit any relation.
    if any(r.kind == "by_sample" and not (r.uniform and r.power is None) for r in operands):
        raise Unrelated(Reason.TOGETHER)
    if call.growing[0] != ():
        raise Unrelated(Reason.TOGETHER)
    sums = [relation for relation in operands if relation.kind == "reduced"]
    if name in SIGNED | CASTS and not (name in CASTS and _rounds(call)):
        return sums[0]
    if name == "mul" and len(sums) == 1:
        return reduced(reduce(_times, (relation.power for relation in operands)))
    # Only a sum as the numerator passes: 1 / sum is not a sum over slices.
    divides = name in ("div", "true_divide") and call.arguments.get("rounding_mode") is None
    if divides and operands[0] is sums[0] and len(sums) == 1:
        return reduced(_times(sums[0].power, -(operands[1].power or 0)))
    if name in ("mul", "div", "true_divide"):
        raise Unrelated(Reason.PRODUCT)
    if name in SUMS:
        # A shared addend counts once a batch, so each slice adds its share r_s of it.
        return reduced(one_power((relation.summed().power for relation in operands), Reason.POWERS))
    if name in CHOICES:
        at = 0 if name == "where" else 1
        if operands[at].kind == "shared" and not operands[at].power:
            rest = [r.summed().power for k, r in enumerate(operands) if k != at]
            return reduced(one_power(rest, Reason.POWERS))
    raise Unrelated(Reason.LOSS)


def _times(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
