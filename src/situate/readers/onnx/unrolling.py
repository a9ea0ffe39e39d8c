"""Loops that carry sequences: their iterations stand one after the other in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from situate.errors import ReadError
from situate.readers.onnx.branches import body, inlined, moved
from situate.readers.onnx.dims import ITERATIONS, Sizes, option
from situate.readers.onnx.loops import check_inputs, check_trips, most_trips
from situate.readers.onnx.making import Maker, constant, node
from situate.readers.onnx.names import node_name
from situate.readers.onnx.scope import Scope

MOST_UNROLLED = 20_000
"""Nodes of all iterations of one loop."""

Visit = Callable[[list[Any]], list[Any]]
"""Follows nodes and returns the nodes that remain to run."""


def carries_sequence(op: Any, scope: Scope) -> bool:
    """True if the op is a loop with a sequence or an optional in its state."""
    carried = op.input[2:] if op.op_type == "Loop" and not op.domain else ()
    return any(name in scope.lists for name in carried)


def unrolled(
    op: Any, graph: Any, scope: Scope, maker: Maker, dim_sizes: Sizes, visit: Visit
) -> list[Any]:
    """The nodes of all iterations of a `Loop`; constants of its body move to `graph`.

    Raises:
        ReadError: how often it runs depends on the data.
    """
    carried = list(op.input[2:])
    inner = body(op, "body", 1 + max(len(carried), len(op.output)))
    check_inputs(op, inner, carried, 2)
    fixed = dim_sizes.trips(node_name(op))
    if fixed is not None:
        check_trips(op, fixed, most_trips(op, scope))
    count = _count(op, scope) if fixed is None else fixed
    if count is None or count * (2 + len(inner.node)) > MOST_UNROLLED:
        raise _endless(op, dim_sizes)
    moved_names = moved(inner, graph, scope, maker.fresh)
    nodes: list[Any] = []
    stacks: list[list[str]] = [[] for _ in inner.output[1 + len(carried) :]]
    for index in range(count):
        outputs = [maker.fresh(value.name) for value in inner.output]
        nodes += visit(_iteration(inner, index, carried, outputs, moved_names, graph, scope, maker))
        carried, last = outputs[1 : 1 + len(carried)], outputs[1 + len(carried) :]
        for stack, name in zip(stacks, last, strict=True):
            stack.append(name)
        goes_on = 1 if fixed is not None else scope.number(outputs[0])
        if goes_on is None:
            raise _endless(op, dim_sizes)
        if not goes_on:
            break
    return nodes + visit(_ends(op, carried, stacks, maker))


def _count(op: Any, scope: Scope) -> int | None:
    """The number of iterations if none of them ends the loop; None if it depends on data."""
    begins = not op.input[1] or scope.number(op.input[1]) is not None
    return most_trips(op, scope) if begins else None


def _endless(op: Any, dim_sizes: Sizes) -> ReadError:
    gives = option(dim_sizes.origin(node_name(op)), ITERATIONS)
    return ReadError(
        f"op {node_name(op)!r}: carries a sequence, and how often it runs depends on the data, or "
        f"is too often to be followed; {gives} gives a number"
    )


def _iteration(
    inner: Any,
    index: int,
    carried: Sequence[str],
    outputs: Sequence[str],
    moved_names: dict[str, str],
    graph: Any,
    scope: Scope,
    maker: Maker,
) -> list[Any]:
    """The nodes of one iteration, which compute `outputs` from the carried values."""
    copy = type(inner)()
    copy.CopyFrom(inner)
    del copy.initializer[:], copy.sparse_initializer[:]
    place, goes_on = (maker.fresh(value.name) for value in inner.input[:2])
    outer = [place, goes_on, *carried]
    names = moved_names | {v.name: name for v, name in zip(inner.input, outer, strict=True)}
    counters = [constant(place, [index], []), constant(goes_on, [True], [], "BOOL")]
    return [*counters, *inlined(copy, outputs, graph, scope, maker.fresh, names)]


def _ends(op: Any, carried: Sequence[str], stacks: Sequence[list[str]], maker: Maker) -> list[Any]:
    """Nodes that make the outputs of the loop."""
    states = list(op.output[: len(carried)])
    nodes = [node("Identity", [a], [b]) for a, b in zip(carried, states, strict=False) if b]
    for name, stack in zip(op.output[len(carried) :], stacks, strict=False):
        if name and not stack:
            raise ReadError(f"op {node_name(op)!r}: stacks {name!r} of no iterations")
        views, rows = maker.views("Unsqueeze", stack, 0)
        nodes += [*views, node("Concat", rows, [name], axis=0)] if name else []
    return nodes
