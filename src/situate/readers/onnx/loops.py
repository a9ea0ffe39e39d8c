"""Loops and scans: a body counts as often as it runs; one that carries sequences is unrolled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat
from typing import Any

from situate.errors import ReadError
from situate.readers.onnx.branches import Follow, body, inlined, moved
from situate.readers.onnx.dims import ITERATIONS, Notes, Sizes, option
from situate.readers.onnx.names import Maker, constant, node, node_name
from situate.readers.onnx.scope import Scope
from situate.readers.onnx.types import element, sizes_of, tensor

# Bodies that run several times: `Loop` and `Scan`, their trip counts and carried values.
TRIPS = "situate.trips"
"""Key of the trip count among the metadata of a node that was followed."""

ENDLESS = 2**31
"""A trip count that only says that a condition ends the loop."""


def trips(node: Any) -> int:
    """The number of times a node's bodies run, as determined earlier."""
    if node.domain or node.op_type not in ("Loop", "Scan"):
        return 1
    return next((int(entry.value) for entry in node.metadata_props if entry.key == TRIPS), 1)


def loop(node: Any, scope: Scope, follow: Follow, dim_sizes: Sizes, notes: Notes) -> dict[str, Any]:
    """Types of a `Loop`'s outputs; its trip count is noted at the node.

    Raises:
        ReadError: the body and the node differ in their numbers of inputs or outputs.
    """
    carried = list(node.input[2:])
    inner = scope.inner()
    graph = body(node, "body", 1 + max(len(carried), len(node.output)))
    _check_inputs(node, graph, carried, 2)
    before = [scope.types[name] for name in carried]
    # A body's first inputs are the number of the iteration, and whether to go on.
    inner.bind(graph.input[0].name, _scalar("INT64"))
    inner.bind(graph.input[1].name, _scalar("BOOL"), _true())
    for value, kind in zip(graph.input[2:], before, strict=True):
        inner.bind(value.name, kind)
    follow(graph, inner)
    after = [inner.types[value.name] for value in graph.output[1:]]
    trips = _loop_trips(node, scope, inner.number(graph.output[0].name), dim_sizes)
    if trips is None:
        notes.loops.append(dim_sizes.origin(node_name(node)))
        notes.assumed.update(node.output)
    count = _note(node, 1 if trips is None else trips)
    states = [_grown_type(a, b, count) for a, b in zip(before, after, strict=False)]
    pairs = zip(node.output, before, states, strict=False)
    notes.changing += [name for name, a, b in pairs if sizes_of(a) != sizes_of(b)]
    stacked = [_stacked(kind, count, 0) for kind in after[len(before) :]]
    return dict(zip(node.output, [*states, *stacked], strict=False))


def _loop_trips(node: Any, scope: Scope, goes_on: int | None, dim_sizes: Sizes) -> int | None:
    """The trip count of a loop; None if it depends on data."""
    trips = _known_trips(node, scope, goes_on)
    count = dim_sizes.trips(node_name(node))
    if count is not None:
        _check_trips(node, count, _most_trips(node, scope) if trips is None else trips, trips)
    return trips if count is None else count


def _known_trips(node: Any, scope: Scope, goes_on: int | None) -> int | None:
    most = _most_trips(node, scope)
    if most == 0 or goes_on is None:
        return most if most == 0 else None
    starts = scope.number(node.input[1]) if node.input[1] else 1
    if starts and not goes_on:
        return 1
    return most if starts and most is not None and most < ENDLESS else None


def _check_trips(node: Any, count: int, most: int | None, actual: int | None = None) -> None:
    """Check a given trip count against the loop.

    Raises:
        ReadError: the loop cannot run so often, or runs another number of times.
    """
    if most is not None and (count > most or actual not in (None, count)):
        times = f"{most} times" if actual is not None else f"at most {most} times"
        raise ReadError(f"dims: loop {node_name(node)!r} runs {times}, and not {count}")


def _most_trips(node: Any, scope: Scope) -> int | None:
    """The trip count of a `Loop` with a constant true condition; None if it depends on data."""
    most = scope.number(node.input[0]) if node.input[0] else ENDLESS
    starts = scope.number(node.input[1]) if node.input[1] else 1
    return 0 if starts == 0 or (most is not None and most <= 0) else most


def _grown_type(before: Any, after: Any, count: int) -> Any:
    """The type of a carried value at the end: dimensions go on as they began."""
    first, second = sizes_of(before), sizes_of(after)
    if count == 0 or len(first) != len(second):
        return after if count else before
    sizes = [max(a + count * (b - a), 0) for a, b in zip(first, second, strict=True)]
    return tensor(element(after), sizes)


def scan(node: Any, scope: Scope, follow: Follow, version: int) -> dict[str, Any]:
    """Types of a `Scan`'s outputs; the length of the scanned axis is noted at the node.

    Raises:
        ReadError: the body and the node differ in their numbers of inputs or outputs.
    """
    # Before version 9, input 0 holds lengths of sequences, and the first axis is the batch.
    inner, batched = scope.inner(), version < 9
    graph = body(node, "body", len(node.output))
    _check_inputs(node, graph, node.input[batched:], 0)
    inputs = [scope.types[name] for name in node.input[batched:]]
    states = len(inputs) - next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 1)
    batch = sizes_of(inputs[0])[:1] if batched else ()
    steps, axes = 1, chain(_axes(node, "scan_input_axes"), repeat(0))
    for place, (value, kind) in enumerate(zip(graph.input, inputs, strict=True)):
        shape = sizes_of(kind)[batched:]
        if place >= states:
            steps, shape = _without(node, shape, next(axes))
        inner.bind(value.name, tensor(element(kind), shape))
    follow(graph, inner)
    _note(node, steps * (batch[0] if batch else 1))
    output_types = [inner.types[value.name] for value in graph.output]
    axes = chain(_axes(node, "scan_output_axes"), repeat(0))
    ends = [
        *output_types[:states],
        *(_stacked(kind, steps, next(axes)) for kind in output_types[states:]),
    ]
    kinds = [tensor(element(kind), (*batch, *sizes_of(kind))) for kind in ends]
    return dict(zip(node.output, kinds, strict=False))


def _axes(node: Any, name: str) -> Iterable[int]:
    return next((a.ints for a in node.attribute if a.name == name), ())


def _without(node: Any, shape: Sequence[int], axis: int) -> tuple[int, tuple[int, ...]]:
    """The size of an axis, and the shape without it."""
    if not -len(shape) <= axis < len(shape):
        raise ReadError(f"op {node_name(node)!r}: scans axis {axis} of {len(shape)} axes")
    axis %= len(shape)
    return shape[axis], (*shape[:axis], *shape[axis + 1 :])


def _stacked(kind: Any, count: int, axis: int) -> Any:
    """The type of an output stacked over all iterations."""
    shape = list(sizes_of(kind))
    shape.insert(axis + len(shape) + 1 if axis < 0 else axis, count)
    return tensor(element(kind), shape)


def _check_inputs(node: Any, graph: Any, outer_inputs: Sequence[str], own: int) -> None:
    """Check that the body takes `own` values beside the outer inputs.

    Raises:
        ReadError: the numbers differ, or an input is missing.
    """
    if (
        len(graph.input) != own + len(outer_inputs)
        or not all(outer_inputs)
        or len(node.input) < own
    ):
        raise ReadError(
            f"op {node_name(node)!r}: hands over {sum(map(bool, outer_inputs))} values, and its "
            f"body takes {len(graph.input) - own}"
        )


def _note(node: Any, count: int) -> int:
    # Nodes are protocol buffers without room for attributes; metadata survives their copies.
    properties = [entry for entry in node.metadata_props if entry.key != TRIPS]
    del node.metadata_props[:]
    node.metadata_props.extend(properties)
    node.metadata_props.add(key=TRIPS, value=str(count))
    return count


def _scalar(kind: str) -> Any:
    import onnx

    return tensor(onnx.TensorProto.DataType.Value(kind), ())


def _true() -> Any:
    """The constant true, for the condition of a body that runs."""
    import onnx

    return onnx.helper.make_tensor("", onnx.TensorProto.BOOL, [], [True])


# Loops that carry sequences: their iterations stand one after the other in their place.
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
    _check_inputs(op, inner, carried, 2)
    fixed = dim_sizes.trips(node_name(op))
    if fixed is not None:
        _check_trips(op, fixed, _most_trips(op, scope))
    count = _count(op, scope) if fixed is None else fixed
    # An iteration adds two constants: its number and its condition.
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
    return _most_trips(op, scope) if begins else None


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
