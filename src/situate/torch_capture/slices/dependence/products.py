"""Products of matrices and vectors, as sums over labels of their dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from situate.torch_capture.slices.dependence.operator_call import Call
from situate.torch_capture.slices.dependence.relation import (
    Reason,
    Relation,
    Unrelated,
    by_sample,
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
    """The relation of a product, with what is added to it."""
    names, equation = EQUATIONS[call.name]
    factors = [call.relation(call.arguments[name]) for name in names.split()]
    *labels, result = equation.split(" ")
    found = _product(call, factors, labels, result)
    if "beta" not in call.arguments:
        return found
    if not call.same("alpha", "beta"):
        raise Unrelated(Reason.NUMBER)
    return _with_addend(call, found)


def _product(
    call: Call, factors: Sequence[Relation], labels: Sequence[str], result: str
) -> Relation:
    kinds = [factor.kind for factor in factors]
    if "unknown" in kinds or "places" in kinds:
        raise Unrelated(Reason.PLACE)
    powers = [factor.power for factor in factors]
    power = None if None in powers else sum(p for p in powers if p is not None)
    if "reduced" in kinds:
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
    [label], blocks = batches, _blocks(factors)
    if label in result:
        return call.check_grows(by_sample(result.index(label), power, blocks))
    if any(f.kind == "shared" and label in own for f, own in zip(factors, labels, strict=True)):
        raise Unrelated(Reason.PLACE)
    return reduced(power)


def _blocks(factors: Sequence[Relation]) -> int:
    """Blocks of the samples, in which all factors must agree."""
    batches = [factor for factor in factors if factor.kind == "by_sample"]
    blocks = {factor.blocks for factor in batches if not factor.uniform}
    if len(blocks) > 1:
        raise Unrelated(Reason.PLACE)
    return next(iter(blocks), 1)


def _with_addend(call: Call, found: Relation) -> Relation:
    """The relation of a product and the tensor that is added to it."""
    addend = call.relation(call.arguments["self"])
    if found.kind == "reduced" or addend.kind == "reduced":
        powers = {found.summed().power, addend.summed().power} - {None}
        if "by_sample" in (found.kind, addend.kind):
            raise Unrelated(Reason.TOGETHER)
        if len(powers) > 1:
            raise Unrelated(Reason.POWERS)
        return reduced(next(iter(powers), None))
    powers = {found.power, addend.power} - {None}
    if len(powers) > 1:
        raise Unrelated(Reason.NUMBER)
    power = next(iter(powers), None)
    if addend.kind == "by_sample":
        axis = len(call.shape()) - call.rank("self") + addend.axis
        if found.kind == "by_sample" and found.axis != axis:
            raise Unrelated(Reason.PAIRS)
        if found.kind == "by_sample" and not addend.uniform and found.blocks != addend.blocks:
            raise Unrelated(Reason.PLACE)
        blocks = found.blocks if found.kind == "by_sample" else addend.blocks
        return call.check_grows(by_sample(axis, power, blocks))
    if addend.kind != "shared":
        raise Unrelated(Reason.PLACE)
    return replace(found, power=power)
