"""Distances of every row of one matrix to every row of another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from situate.torch_capture.slices.dependence.operator_call import Call
from situate.torch_capture.slices.dependence.relation import (
    SHARED,
    Reason,
    Relation,
    Unrelated,
    by_sample,
    common,
    reduced,
)

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
    rows = (replace(each, axis=0) for each in (one, other) if each.kind == "by_sample")
    blocks = common(rows, otherwise=by_sample(0)).blocks
    if call.name == "_cdist_backward":
        return _gradient(call, one, axes, blocks)
    if not axes:
        return SHARED
    rank = len(call.shape())
    return call.check_grows(by_sample(rank - axes.pop(), 0, blocks))


def _axes(call: Call, name: str, relation: Relation, rows: int) -> Iterator[int]:
    """The dimension of the distances that holds the samples of a matrix, counted from the last one,
    which is 1; its rows lie along number `rows`."""
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
