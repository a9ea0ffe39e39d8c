"""Operators that read or write at the positions in a tensor of integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from situate.torch_capture.slices.dependence.operator_call import Call, Relations
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

if TYPE_CHECKING:
    from torch import fx

READS = frozenset({"index", "_unsafe_index", "gather", "index_select", "embedding", "take"})

WRITES = frozenset(
    {"index_put", "_unsafe_index_put", "scatter", "scatter_add", "index_add", "index_copy"}
    | {"index_fill", "scatter_reduce"}
)

TABLES = frozenset({"embedding_dense_backward"})

BAGS = frozenset({"_embedding_bag", "_embedding_bag_forward_only"})

BAG_GRADIENTS = frozenset(
    {"_embedding_bag_backward", "_embedding_bag_dense_backward"}
    | {"_embedding_bag_per_sample_weights_backward"}
)


def read_relation(call: Call) -> Relations:
    """The relation of a read at indices."""
    if call.name == "embedding":
        return _embedding(call)
    source = call.relation(call.arguments["self"])
    if source.kind in ("places", "unknown"):
        raise Unrelated(Reason.PLACE)
    if call.name in ("index", "_unsafe_index"):
        return _indexed(call, source, call.arguments["indices"])
    if call.name == "index_select":
        rank, dim = call.rank("self"), call.arguments["dim"] % call.rank("self")
        indices = [None] * dim + [call.arguments["index"]] + [None] * (rank - dim - 1)
        return _indexed(call, source, indices)
    if call.name == "gather":
        return _gathered(call, source)
    raise Unrelated(Reason.PAIRS)


def _embedding(call: Call) -> Relation:
    table, indices = (call.relation(call.arguments[n]) for n in ("weight", "indices"))
    if indices.kind in ("places", "unknown"):
        raise Unrelated(Reason.PLACE)
    if table.kind == "by_sample":
        raise Unrelated(Reason.PAIRS)
    if table.kind == "reduced" or indices.kind == "reduced":
        raise Unrelated(Reason.LOSS)
    # Frequencies are counted over the samples of a slice.
    if call.arguments.get("scale_grad_by_freq"):
        raise Unrelated(Reason.TOGETHER)
    return replace(indices, power=table.power)


def _gathered(call: Call, source: Relation) -> Relation:
    index = call.relation(call.arguments["index"])
    dim = call.arguments["dim"] % max(call.rank("self"), 1)
    gathered = _beside(source, index, dim)
    if gathered.kind == "by_sample" == source.kind:
        _check_length(call, gathered.axis)
    return call.check_grows(gathered) if gathered.kind == "by_sample" else gathered


def _check_length(call: Call, axis: int) -> None:
    """Refuse an index of fewer samples than the tensor beside it, since it names that tensor's
    first ones."""
    if call.shape(call.arguments["index"])[axis] != call.shape(call.arguments["self"])[axis]:
        raise Unrelated(Reason.PLACE)


def _beside(source: Relation, index: Relation, dim: int) -> Relation:
    """The relation of a tensor and an index of the same rank, which lie beside one another."""
    batch = common((source, index), otherwise=source)
    # Along `dim` the index says what is read; along others, samples stand beside one another.
    if batch.kind == "by_sample" and (batch.axis == dim) == (source.kind == "by_sample"):
        raise Unrelated(Reason.PAIRS)
    return replace(batch, power=source.power, uniform=False)


def _indexed(call: Call, source: Relation, indices: Sequence[fx.Node | None]) -> Relation:
    """The relation of `self[indices]`."""
    relations = [None if node is None else call.relation(node) for node in indices]
    _check_indices(call, source, relations)
    if source.kind == "reduced":
        if any(r is not None and r.kind != "shared" for r in relations):
            raise Unrelated(Reason.TOGETHER)
        return source
    axes = set(_axes_by_sample(call, source, indices, relations))
    if len(axes) > 1:
        raise Unrelated(Reason.PAIRS)
    if not axes:
        return source
    by_samples = (r for r in (source, *relations) if r is not None and r.kind == "by_sample")
    # `axes` holds the samples' dimension in the result; those in the operands do not matter.
    batch = common((replace(relation, axis=0) for relation in by_samples), otherwise=by_sample(0))
    return call.check_grows(by_sample(axes.pop(), source.power, batch.blocks))


def _check_indices(call: Call, source: Relation, relations: Sequence[Relation | None]) -> None:
    """Refuse indices that name other samples than each slice's own."""
    for dim, relation in enumerate(relations):
        if relation is None:
            continue
        along = source.kind == "by_sample" and dim == source.axis
        if relation.kind in ("reduced", "unknown"):
            raise Unrelated(Reason.PAIRS if relation.kind == "unknown" else Reason.TOGETHER)
        if relation.power not in (0, None):
            raise Unrelated(Reason.NUMBER)
        if along and not (relation.kind == "places" and _names_own(call, source, relation)):
            raise Unrelated(Reason.PAIRS)
        if not along and relation.kind == "places":
            raise Unrelated(Reason.PLACE)


def _names_own(call: Call, source: Relation, places: Relation) -> bool:
    """True if places along the samples are those of the slice's own samples."""
    entries = call.shape(call.arguments["self"])[source.axis]
    return source.blocks == 1 and entries == places.scale * call.samples


def _axes_by_sample(
    call: Call,
    source: Relation,
    indices: Sequence[fx.Node | None],
    relations: Sequence[Relation | None],
) -> list[int]:
    """The dimensions of the result that hold samples, from the tensor and from its indices."""
    used = [dim for dim, node in enumerate(indices) if node is not None]
    ranks = [len(call.shape(node)) for node in indices if node is not None]
    width = max(ranks, default=0)
    # NumPy's rule: dimensions of adjacent indices stay in place, those of others come first.
    adjacent = used == list(range(used[0], used[-1] + 1)) if used else True
    begin = used[0] if used and adjacent else 0
    axes = []
    if source.kind == "by_sample" and source.axis not in used:
        before = sum(dim < source.axis for dim in used)
        place = source.axis - before
        # Dimensions that are kept stand behind those of the indices if these come before them.
        axes.append(place + width if begin <= place else place)
    for node, relation in zip(indices, relations, strict=True):
        if node is not None and relation is not None and relation.kind in ("by_sample", "places"):
            axes.append(begin + width - len(call.shape(node)) + relation.axis)
    return axes


def write_relation(call: Call) -> Relations:
    """The relation of a tensor in which entries at indices are replaced, or added to."""
    target = call.relation(call.arguments["self"])
    if call.name in ("index_put", "_unsafe_index_put"):
        return _put_relation(call, target)
    index = call.relation(call.arguments["index"])
    value = next((n for n in ("src", "source", "value") if n in call.arguments), "src")
    entry = call.operand(value) or SHARED
    dim = call.arguments["dim"] % max(call.rank("self"), 1)
    adds = call.name in ("scatter_add", "index_add")
    along_dim = call.name.startswith("index_")
    return _scattered(call, target, index, entry, dim, adds, along_dim)


def _scattered(
    call: Call,
    target: Relation,
    index: Relation,
    entry: Relation,
    dim: int,
    adds: bool,
    along_dim: bool,
) -> Relation:
    if {"unknown", "reduced"} & {target.kind, index.kind, entry.kind} or entry.kind == "places":
        raise Unrelated(Reason.TOGETHER)
    # An index along one dimension holds it in the only dimension that it has.
    own = replace(index, axis=dim) if along_dim and index.kind != "shared" else index
    power = one_power((entry.power, target.power))
    if target.kind == "by_sample":
        if own.kind == "places" and not (own.axis == target.axis and _names_own(call, target, own)):
            raise Unrelated(Reason.PLACE)
        if target.axis == dim and own.kind != "places":
            raise Unrelated(Reason.PAIRS)
        if not along_dim:
            if own.kind != "by_sample":
                raise Unrelated(Reason.PLACE)
            _check_length(call, target.axis)
        batch = common((target, entry) if own.kind == "places" else (target, own, entry))
        return call.check_grows(replace(batch, power=power, uniform=False))
    if own.kind == "shared" == entry.kind:
        return target.with_power(power)
    # Every sample adds its entries to zeros, so the slices' results add up to the batch's.
    if adds and target.power is None and own.kind == "by_sample" and own.axis == dim:
        common((own, entry))
        return reduced(entry.power)
    raise Unrelated(Reason.TOGETHER)


def _put_relation(call: Call, target: Relation) -> Relation:
    indices, values = call.arguments["indices"], call.relation(call.arguments["values"])
    relations = [None if node is None else call.relation(node) for node in indices]
    if not {target.kind, values.kind} <= {"shared", "by_sample"}:
        raise Unrelated(Reason.TOGETHER)
    by_samples = [r for r in (values, *relations) if r is not None and r.kind == "by_sample"]
    batch = common((replace(relation, axis=0) for relation in by_samples), otherwise=by_sample(0))
    _check_axes(call, target, relations, values)
    if target.kind == "by_sample":
        _check_indices(call, target, relations)
        if not (target.uniform or batch.uniform or target.blocks == batch.blocks):
            raise Unrelated(Reason.PLACE)
        power = one_power((values.power, target.power))
        return call.check_grows(replace(target, power=power, uniform=False))
    kinds = {r.kind for r in relations if r is not None}
    if kinds <= {"shared"} and values.kind == "shared":
        return target.with_power(values.power)
    # The gradient of a table that was read at the indices of all samples.
    if call.arguments["accumulate"] and target.power is None and kinds <= {"shared", "by_sample"}:
        return reduced(values.power)
    raise Unrelated(Reason.TOGETHER)


def _check_axes(
    call: Call, target: Relation, relations: Sequence[Relation | None], values: Relation
) -> None:
    """Refuse indices and values whose samples lie along several dimensions."""
    indices = call.arguments["indices"]
    axes = set(_axes_by_sample(call, target, indices, relations))
    if values.kind == "by_sample":
        ranks = [len(call.shape(node)) for node in indices if node is not None]
        rank = max(ranks, default=0) + call.rank("self") - len(ranks)
        # Values are broadcast to `self[indices]`, whose dimensions they match from the last one.
        axes.add(rank - len(call.shape(call.arguments["values"])) + values.axis)
    if len(axes) > 1:
        raise Unrelated(Reason.PAIRS)


def table_gradient(call: Call) -> Relation:
    """The relation of the gradient of a table, to which all samples add."""
    gradient, indices = (call.relation(call.arguments[n]) for n in ("grad_output", "indices"))
    if call.arguments["scale_grad_by_freq"] and indices.kind != "shared":
        raise Unrelated(Reason.TOGETHER)
    if indices.kind == "shared" and gradient.kind in ("shared", "reduced"):
        return gradient
    common((gradient, indices))
    return reduced(gradient.power)


def bag(call: Call) -> Relations:
    """The relation of sums of rows of a table. Bags begin at offsets, which must be the places of
    the slice's own samples."""
    table, indices, offsets = (
        call.relation(call.arguments[name]) for name in ("weight", "indices", "offsets")
    )
    entries = call.shape(call.arguments["indices"])[0]
    weights = call.operand("per_sample_weights") or indices
    # Bags of equally many entries: each bag holds entries of one sample.
    own = offsets.kind == "places" and common((indices, weights)).blocks == 1
    if not own or table.kind != "shared" or offsets.scale * call.shape()[0] != entries:
        raise Unrelated(Reason.PLACE)
    if call.arguments.get("scale_grad_by_freq"):
        raise Unrelated(Reason.TOGETHER)
    return tuple(
        by_sample(0, table.power) if call.growing[k] else SHARED for k in range(len(call.shapes))
    )


def bag_gradient(call: Call) -> Relation:
    """The relation of the gradient of such a table."""
    gradient = call.relation(call.first)
    if gradient.kind != "by_sample" or call.growing[0] != ():
        raise Unrelated(Reason.PLACE)
    return reduced(gradient.power)
