"""The rule of each operator: its result's relation to the samples, from the relations of its
inputs."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from situate.torch_capture.nodes import operator_name
from situate.torch_capture.slices.dependence import (
    indexing,
    losses,
    norms,
    pointwise,
    products,
    reductions,
    trailing,
    views,
)
from situate.torch_capture.slices.dependence.operator_call import Call, Relations
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    UNKNOWN,
    Reason,
    Relation,
    Unrelated,
    by_sample,
    common,
    reduced,
)

if TYPE_CHECKING:
    from torch import fx

FILLED = frozenset(
    {"full_like", "zeros_like", "ones_like", "empty_like", "new_zeros", "new_ones", "new_full"}
    | {"new_empty", "new_empty_strided", "empty", "empty_strided", "empty_permuted", "full"}
    | {"zeros", "ones", "scalar_tensor"}
)
"""Operators that make a tensor of one number."""

ZEROS = frozenset({"zeros_like", "new_zeros", "zeros"})

LINEAR_GRADIENTS = frozenset({"_weight_norm_interface_backward"})
"""Gradients of tensors computed from parameters alone, linear in their first tensor."""


def relation_of(call: Call, over_batch: Collection[fx.Node]) -> Relations:
    """The relation of the result of a call. A call that its operator's rule does not cover has
    none.

    Args:
        call: of an operator.
        over_batch: batch norms, and their gradients, that take statistics over all slices.

    Raises:
        Unrelated: there is none.
    """
    try:
        return _relation(call, over_batch)
    # An operator in an unexpected form must never count as proved.
    except (LookupError, TypeError, ValueError, AttributeError):
        raise Unrelated(Reason.UNPROVED) from None


def _relation(call: Call, over_batch: Collection[fx.Node]) -> Relations:
    if call.node.target is operator.getitem:
        return _entry(call)
    if not hasattr(call.node.target, "_schema"):
        return _of_no_schema(call)
    if call.name in FILLED:
        return _filled(call)
    if _draws(call):
        call.check_numbers()
        return _random_relation(call)
    if _is_deterministic(call):
        return (SHARED,) * len(call.shapes)
    # These rules accept numbers that grow with the batch; all others refuse them below.
    if (related := _of_own_numbers(call)) is not None:
        return related
    call.check_numbers()
    if call.name in norms.BATCH_NORMS or call.name in norms.GRADIENTS:
        return norms.batch_norm(call, call.node in over_batch)
    return _by_kind(call)


def _of_own_numbers(call: Call) -> Relations | None:
    """The relation by a rule that examines the numbers among the arguments itself; None if there is
    no such rule."""
    if call.name in views.VIEWS:
        return views.view(call)
    if pointwise.is_pointwise(call.node.target, call.name):
        return (pointwise.pointwise(call),) * len(call.shapes)
    if call.name in losses.CTC:
        return losses.ctc(call)
    return trailing.grouped(call) if trailing.is_grouped(call) else None


def _by_kind(call: Call) -> Relations:
    name = call.name
    if name in ("cat", "stack"):
        return views.joined(call)
    if name in products.EQUATIONS:
        return products.product(call)
    if losses.is_loss(name):
        return losses.loss(call)
    if name in products.DISTANCES:
        return products.distances(call)
    if name in LINEAR_GRADIENTS:
        return _linear_gradient(call)
    if name in reductions.REDUCTIONS:
        return reductions.reduction(call)
    if name in reductions.ALONG:
        return reductions.along(call)
    for names, rule in _INDEXING.items():
        if name in names:
            return rule(call)
    dims = trailing.trailing_dims(call)
    if dims is not None:
        return trailing.trailing(call, dims)
    raise Unrelated(Reason.UNPROVED)


_INDEXING = {
    indexing.READS: indexing.read_relation,
    indexing.WRITES: indexing.write_relation,
    indexing.TABLES: indexing.table_gradient,
    indexing.BAGS: indexing.bag,
    indexing.BAG_GRADIENTS: indexing.bag_gradient,
}


def _is_deterministic(call: Call) -> bool:
    """True if equal inputs and arguments at both sizes imply equal results."""
    equal = all(
        relation.kind == "shared" and relation.power in (0, None) for relation in call.inputs
    )
    if not (equal and call.has_equal_arguments and not any(call.growing)):
        return False
    # The rules of these know zeros from other numbers.
    return bool(call.node.all_input_nodes) and not any(r.power is None for r in call.inputs)


def _entry(call: Call) -> Relation:
    source: fx.Node = call.node.args[0]  # type: ignore[assignment]
    results = call.before[source]
    if isinstance(results, Relation):
        return results
    index: int = call.node.args[1]  # type: ignore[assignment]
    return results[index]


def _of_no_schema(call: Call) -> Relations:
    if operator_name(call.node) == "with_effects":
        inner: Any = call.node.args[1]
        if not inner._schema.returns:
            # A check of values, which computes nothing.
            return (SHARED,) * len(call.shapes)
    raise Unrelated(Reason.UNPROVED)


def _filled(call: Call) -> Relation:
    # Uninitialised numbers are written over before they are read, so they fit any relation as zeros
    # do.
    power = None if call.name in ZEROS or "empty" in call.name else _fill_power(call)
    if call.growing[0] == ():
        return Relation("shared", power)
    if len(call.growing[0]) > 1:
        raise Unrelated(Reason.PAIRS)
    return call.check_grows(by_sample(call.growing[0][0], power, uniform=True))


def _linear_gradient(call: Call) -> Relations:
    gradient, *others = call.inputs
    if gradient.kind not in ("shared", "reduced") or any(relation != SHARED for relation in others):
        raise Unrelated(Reason.UNPROVED)
    return (gradient,) * len(call.shapes)


def _fill_power(call: Call) -> int | None:
    argument = "fill_value" if "fill_value" in call.arguments else "s"
    if argument not in call.arguments:
        return 0
    value = call.operand(argument)
    if value is None:
        return 0
    if value.kind != "shared":
        raise Unrelated(Reason.NUMBER)
    return value.power


def assumed(call: Call) -> Relations:
    """The relation that a result without one is assumed to have, so that later ops can be
    examined."""
    return tuple(_assumed(call, k) for k in range(len(call.shapes)))


def _assumed(call: Call, k: int) -> Relation:
    if not call.growing[k]:
        is_sum = any(relation.kind != "shared" for relation in call.inputs)
        return reduced(1) if is_sum else SHARED
    return by_sample(call.growing[k][0])


ATTENTION = "scaled_dot_product"
"""Part of the names of operators that may drop numbers, at a rate among their arguments."""

DROPOUTS = frozenset({"native_dropout", "_fused_dropout", "alpha_dropout", "dropout"})


def _draws(call: Call) -> bool:
    """True for an operator that draws random numbers."""
    import torch

    tags: Any = getattr(call.node.target, "tags", ())
    if ATTENTION in call.name or "attention" in call.name:
        return False
    return torch.Tag.nondeterministic_seeded in tags


def _random_relation(call: Call) -> Relations:
    """The relation of random numbers: by sample if each sample has its own."""
    if call.name == "randperm":
        if call.growing[0] == ():
            raise Unrelated(Reason.RANDOM)
        return UNKNOWN
    # Dropout multiplies its first input by a draw; other operators read only the shape of theirs.
    scales = call.name in DROPOUTS
    if any(source.power for source in call.inputs[scales:]):
        raise Unrelated(Reason.NUMBER)
    batch = common(call.inputs, otherwise=SHARED)
    power = call.inputs[0].power if scales else 0
    results = range(len(call.shapes))
    return tuple(_drawn_result(call, k, batch, power if k == 0 else 0) for k in results)


def _drawn_result(call: Call, k: int, batch: Relation, power: int | None) -> Relation:
    if len(call.growing[k]) != 1:
        raise Unrelated(Reason.PAIRS if call.growing[k] else Reason.RANDOM)
    [axis] = call.growing[k]
    blocks = batch.blocks if batch.kind == "by_sample" else 1
    return call.check_grows(by_sample(axis, power, blocks), k)
