"""Ops that relate the samples of a batch to one another: in a step of slices they see those of a
slice alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from math import prod
from typing import TYPE_CHECKING

from situate.errors import SituateError
from situate.torch_capture import names
from situate.torch_capture.slices.call import given, name_of
from situate.torch_capture.slices.sizes import Sizes

if TYPE_CHECKING:
    from torch import fx

BATCH_NORMS = frozenset(
    {"native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional"}
    | {"_batch_norm_with_update", "_batch_norm_with_update_functional", "cudnn_batch_norm"}
)
ALONG = frozenset(
    {"_softmax", "_log_softmax", "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "sort"}
    | {"topk", "flip", "roll", "gather", "index_select", "median", "kthvalue"}
)
"""Operators that relate what lies along a dimension, `dim` or `dims`."""

VIEWS = frozenset({"view", "_unsafe_view", "reshape"})

STATISTICS = (
    "batch normalisation: each slice has statistics of its own, as where gradients accumulate; "
    "--batch-norm batch takes those of the batch"
)
TOGETHER = "{} takes in all samples of a slice together, and not all of the batch"
PAIRS = "{} relates every sample to those of its slice, and not to all of the batch"
OTHER_OPS = (
    "slices: the step runs other ops at a slice's size than at the batch's, so it was not looked "
    "for what depends on the whole batch"
)


def notes(sizes: Sizes, exact: Collection[fx.Node] = ()) -> Iterator[str]:
    """A line for each way in which the samples of a batch depend on one another.

    Args:
        sizes: of a slice, beside the batch.
        exact: batch norms whose statistics are those of the batch.

    Raises:
        SituateError: an op has a size of the batch as a number.
    """
    if not sizes.comparable:
        yield OTHER_OPS
        return
    found: dict[str, list[fx.Node]] = defaultdict(list)
    for node in sizes.forward:
        if node.op == "call_function" and node in sizes.of_samples:
            _check_view(sizes, node)
            if node not in exact and (text := _note(sizes, node)):
                found[text].append(node)
    for name in sizes.written:
        yield f"slices: buffer {name!r} is written by every slice, one after the other"
    for text, nodes in found.items():
        where = names.module(nodes[0]) or "the model"
        many = f"{len(nodes)} ops, the first" if len(nodes) > 1 else "an op"
        yield f"slices: {text} ({many} of {where})"


def _note(sizes: Sizes, node: fx.Node) -> str:
    """The line on a node, without its place; empty where samples stay apart."""
    name, source = name_of(node), node.all_input_nodes[0]
    if name in BATCH_NORMS:
        return STATISTICS * has_statistics(sizes, node)
    if any(len(sizes.growing(each)) > 1 for each in node.all_input_nodes):
        return ""
    if len(sizes.growing(node)) > 1:
        return PAIRS.format(f"aten.{name}")
    if name in ALONG and _along(node) & {*sizes.growing(source)}:
        return PAIRS.format(f"aten.{name}")
    if sizes.reads_growing(node) and not sizes.growing(node) and _comes_back(sizes, node):
        return TOGETHER.format(f"aten.{name}")
    return ""


def has_statistics(sizes: Sizes, node: fx.Node) -> bool:
    """True for a batch norm that trains, and whose channels are not the samples themselves, as
    instance norm has it."""
    trains = given(node).get("training", given(node).get("train", True))
    return bool(trains) and any(i != 1 for i in sizes.growing(node))


def _along(node: fx.Node) -> set[int]:
    """The dimensions along which a node relates what it reads."""
    arguments = given(node)
    along = arguments.get("dim", arguments.get("dims"))
    rank = node.all_input_nodes[0].meta["val"].dim()
    return {i % max(rank, 1) for i in (along if isinstance(along, (list, tuple)) else [along or 0])}


def _comes_back(sizes: Sizes, node: fx.Node) -> bool:
    """True if what a node makes of all samples goes into what is computed for each of them."""
    forward, seen, pending = set(sizes.forward), {node}, [node]
    while pending:
        for user in pending.pop().users:
            if user in forward and user not in seen:
                if sizes.growing(user):
                    return True
                seen.add(user)
                pending.append(user)
    return False


def _check_view(sizes: Sizes, node: fx.Node) -> None:
    """Refuse a view that deals out the samples of a batch anew, as `x.view(8, -1)` does at another
    size than 8."""
    if name_of(node) not in VIEWS:
        return
    before, after = node.all_input_nodes[0], node
    # A dimension of that very size is the batch; a larger one may have it inside.
    first = _first(sizes, before) == sizes.samples
    if first and sizes.growing(after) and not _first(sizes, after):
        raise SituateError(
            f"slices: aten.{name_of(node)} of {names.module(node) or 'the model'} has a size of "
            f"the batch as a number: of {_shape(sizes.other(before))} it makes "
            f"{_shape(sizes.other(after))}, and in a slice {_shape(after)} of {_shape(before)}: "
            "let its sizes follow from the inputs"
        )


def _first(sizes: Sizes, node: fx.Node) -> int:
    """The size of the dimension that grows with the batch, if all before it are of size 1; else
    0."""
    shape, growing = _shape(node), sizes.growing(node)
    return shape[growing[0]] if growing and prod(shape[: growing[0]]) == 1 else 0


def _shape(node: fx.Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)
