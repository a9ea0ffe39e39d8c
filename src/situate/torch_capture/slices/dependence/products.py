"""Products of matrices and vectors, as sums over labels of their dimensions, and distances between
the rows of two matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

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

EQUATIONS = {
    "mm": ("self mat2", "mk kn mn"),
    "_int_mm": ("self mat2", "mk kn mn"),
    "bmm": ("self mat2", "bmk bkn bmn"),
    "mv": ("self vec", "mk k m"),
    "dot": ("self tensor", "k k "),
    "vdot": ("self other", "k k "),
    "addmm": ("mat1 mat2", "mk kn mn"),
    "baddbmm": ("batch1 batch2", "bmk bkn bmn"),
    "addmv": ("mat vec", "mk k m"),
    "addbmm": ("batch1 batch2", "bmk bkn mn"),
    "addr": ("vec1 vec2", "m n mn"),
}
"""By operator, the names of its factors, and the labels of their dimensions and the result's."""


def product(call: Call) -> Relation:
    """The relation of a product, with its addend if it has one."""
    names, equation = EQUATIONS[call.name]
    factors = [call.relation(call.arguments[name]) for name in names.split()]
    *labels, result = equation.split(" ")
    multiplied = _product(call, factors, labels, result)
    return _with_addend(call, multiplied) if "beta" in call.arguments else multiplied


def _product(
    call: Call, factors: Sequence[Relation], labels: Sequence[str], result: str
) -> Relation:
    kinds = [factor.kind for factor in factors]
    if "unknown" in kinds or "places" in kinds:
        raise Unrelated(Reason.PLACE)
    powers = [factor.power for factor in factors]
    power = None if None in powers else sum(p for p in powers if p is not None)
    if "reduced" in kinds:
        # A product is linear in each factor, so it passes a sum on if all other factors are shared.
        if kinds.count("shared") == len(kinds) - 1 and call.growing[0] == ():
            return reduced(power)
        raise Unrelated(Reason.TOGETHER if "by_sample" in kinds else Reason.PRODUCT)
    batches = {
        labels[k][factor.axis]: factor
        for k, factor in enumerate(factors)
        if factor.kind == "by_sample"
    }
    if not batches:
        return Relation("shared", power)
    if len(batches) > 1:
        raise Unrelated(Reason.PAIRS)
    [label] = batches
    # Along that label, whichever dimension of a factor it names.
    blocks = common(replace(f, axis=0) for f in factors if f.kind == "by_sample").blocks
    # The samples' label remains in the result, or the product sums over it.
    if label in result:
        return call.check_grows(by_sample(result.index(label), power, blocks))
    # A shared factor along the samples would weigh each sample by its place.
    if any(f.kind == "shared" and label in own for f, own in zip(factors, labels, strict=True)):
        raise Unrelated(Reason.PLACE)
    return reduced(power)


def _with_addend(call: Call, multiplied: Relation) -> Relation:
    """The relation of the sum of a product and an addend."""
    addend = call.relation(call.arguments["self"])
    if "reduced" in (multiplied.kind, addend.kind):
        if "by_sample" in (multiplied.kind, addend.kind):
            raise Unrelated(Reason.TOGETHER)
        return reduced(one_power((multiplied.summed().power, addend.summed().power), Reason.POWERS))
    own = len(call.shape()) - call.rank("self") + addend.axis
    batch = common([multiplied, replace(addend, axis=own)], otherwise=SHARED)
    total = batch.with_power(one_power((multiplied.power, addend.power)))
    return total if batch is SHARED else call.check_grows(total)


DISTANCES = frozenset({"_cdist_forward", "_cdist_backward"})


def distances(call: Call) -> Relation:
    """The relation of distances (..., p, r) of x1 (..., p, m) to x2 (..., r, m), or of the gradient
    of x1."""
    one, other = (call.relation(call.arguments[name]) for name in ("x1", "x2"))
    if not {one.kind, other.kind} <= {"shared", "by_sample"} or one.power or other.power:
        raise Unrelated(Reason.LOSS)
    axes = {*_axes(call, "x1", one, 2), *_axes(call, "x2", other, 1)}
    if len(axes) > 1:
        raise Unrelated(Reason.PAIRS)
    rows = (replace(matrix, axis=0) for matrix in (one, other) if matrix.kind == "by_sample")
    blocks = common(rows, otherwise=by_sample(0)).blocks
    if call.name == "_cdist_backward":
        return _gradient(call, one, axes, blocks)
    if not axes:
        return SHARED
    rank = len(call.shape())
    return call.check_grows(by_sample(rank - axes.pop(), 0, blocks))


def _axes(call: Call, name: str, relation: Relation, rows: int) -> Iterator[int]:
    """The dimension of the distances that holds a matrix's samples, counted from the last, which is
    1. The matrix's rows lie along number `rows`."""
    if relation.kind == "by_sample":
        from_last = call.rank(name) - relation.axis
        if from_last == 1:
            raise Unrelated(Reason.TOGETHER)
        yield rows if from_last == 2 else from_last


def _gradient(call: Call, one: Relation, axes: set[int], blocks: int) -> Relation:
    gradient = call.relation(call.arguments["grad"])
    own = call.rank("grad") - gradient.axis
    if gradient.kind != "by_sample" or axes != {own} or gradient.blocks != blocks:
        raise Unrelated(Reason.UNPROVED)
    if one.kind == "shared":
        return reduced(gradient.power)
    return call.check_grows(by_sample(one.axis, gradient.power, blocks))
