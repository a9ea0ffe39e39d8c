"""Sequences and optionals of known content: ops on them become ops on the tensors they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from situate.errors import ReadError
from situate.readers.onnx.names import Maker, constant, node, node_name
from situate.readers.onnx.scope import Scope
from situate.readers.onnx.types import sizes_of

MOST_PARTS = 1024
"""Tensors of one sequence: their sizes are one small constant."""

REMEDIES = {
    "map": "export the model without it (skl2onnx: options={'zipmap': False})",
    "optional": "hand over the tensor itself, or leave it out",
    "sequence": "hand over its tensors as values of their own",
}
"""Names of types other than tensors."""


def refusal(where: str, name: str, which: str) -> ReadError:
    """The error of a value that is no tensor and of unknown content."""
    return ReadError(
        f"{where}: {name!r} is of type {which}, and only tensors are read: {REMEDIES[which]}"
    )


def lowered(op: Any, scope: Scope, maker: Maker) -> list[Any] | None:
    """Nodes on tensors with the same effect as the op; None if the op has only tensors.

    Raises:
        ReadError: the op's choice of tensors depends on data.
    """
    on_list = bool(op.input) and op.input[0] in scope.lists
    rule = (_ON_LISTS if on_list else _ON_TENSORS).get(op.op_type)
    if rule is None or op.domain or not op.output:
        return None
    try:
        return rule(op, scope, maker)
    except IndexError:
        raise ReadError(f"op {node_name(op)!r}: lacks an input of {op.op_type}") from None


def _hold(op: Any, scope: Scope, content: list[str]) -> list[Any]:
    """The op makes a sequence of these tensors, and there is nothing to run.

    Raises:
        ReadError: there are too many of them.
    """
    _check_length(op, len(content))
    scope.lists[op.output[0]] = tuple(content)
    return []


def _check_length(op: Any, length: int) -> None:
    if length > MOST_PARTS:
        raise ReadError(
            f"op {node_name(op)!r}: makes a sequence of {length:,} tensors, more than "
            f"{MOST_PARTS:,}"
        )


def _same(op: Any, scope: Scope, _maker: Maker) -> list[Any]:
    return _hold(op, scope, list(scope.lists[op.input[0]]))


def _construct(op: Any, scope: Scope, _maker: Maker) -> list[Any]:
    return _hold(op, scope, [name for name in op.input if name])


def _insert(op: Any, scope: Scope, _maker: Maker) -> list[Any]:
    content = list(scope.lists[op.input[0]])
    content.insert(_place(op, scope, 2, len(content), len(content) + 1), op.input[1])
    return _hold(op, scope, content)


def _erase(op: Any, scope: Scope, _maker: Maker) -> list[Any]:
    content = list(scope.lists[op.input[0]])
    del content[_place(op, scope, 1, -1, len(content))]
    return _hold(op, scope, content)


def _at(op: Any, scope: Scope, _maker: Maker) -> list[Any]:
    content = scope.lists[op.input[0]]
    source = content[_place(op, scope, 1, 0, len(content))]
    # Later ops read the output by its own name, which becomes another name of the tensor.
    return [node("Identity", [source], op.output[:1], name=op.name)]


def _place(op: Any, scope: Scope, place: int, default: int, length: int) -> int:
    """A position in a sequence, counted from its beginning.

    Raises:
        ReadError: it is out of range, or depends on the data.
    """
    index_input = op.input[place] if place < len(op.input) else ""
    position = scope.number(index_input) if index_input else default
    if position is None:
        raise ReadError(
            f"op {node_name(op)!r}: its place in the sequence, {index_input!r}, depends on the "
            "data: choose from one tensor instead (Gather of a stack)"
        )
    if not -length <= position < length:
        raise ReadError(f"op {node_name(op)!r}: takes place {position} of a sequence of {length}")
    # A negative place counts from the end.
    return position % length


def _length(op: Any, scope: Scope, _maker: Maker) -> list[Any]:
    return [constant(op.output[0], [len(scope.lists[op.input[0]])], [])]


def _has_element(op: Any, scope: Scope, _maker: Maker) -> list[Any]:
    """A tensor counts as an optional with an element; an empty sequence as one without."""
    first = op.input[0] if op.input else ""
    has = bool(first) and scope.lists.get(first) != ()
    return [constant(op.output[0], [has], [], "BOOL")]


def _element(op: Any, scope: Scope, maker: Maker) -> list[Any]:
    content = scope.lists.get(op.input[0], (op.input[0],))
    if len(content) != 1:
        return _same(op, scope, maker)
    return [node("Identity", content, op.output[:1], name=op.name)]


def _concatenate(op: Any, scope: Scope, maker: Maker) -> list[Any]:
    """Joined along an axis that the tensors have, or stacked along a new one."""
    content, axis = list(scope.lists[op.input[0]]), _number(op, "axis", 0)
    views: list[Any] = []
    if _number(op, "new_axis", 0):
        views, content = maker.views("Unsqueeze", content, axis)
    return [*views, node("Concat", content, op.output[:1], axis=axis, name=op.name)]


def _split(op: Any, scope: Scope, maker: Maker) -> list[Any]:
    """The given sizes of parts; else 1 for each place along the axis, for `keepdims=0`."""
    axis, shape = _number(op, "axis", 0), sizes_of(scope.types[op.input[0]])
    if not -len(shape) <= axis < len(shape):
        raise ReadError(f"op {node_name(op)!r}: splits axis {axis} of {len(shape)} axes")
    split_input = op.input[1] if len(op.input) > 1 else ""
    sizes = _sizes(op, scope, split_input, shape[axis])
    _check_length(op, len(sizes))
    nodes, content = maker.split(node_name(op), op.input[0], sizes, axis)
    views: list[Any] = []
    # ONNX ignores `keepdims` if sizes are given.
    if content and not split_input and not _number(op, "keepdims", 1):
        views, content = maker.views("Squeeze", content, axis)
    _hold(op, scope, content)
    return [*nodes, *views]


def _sizes(op: Any, scope: Scope, split_input: str, total: int) -> Sequence[int]:
    """The sizes in a list; or equal sizes, 1 by default, with a smaller last one if needed."""
    import onnx

    if not split_input:
        return _equal(total, 1)
    if (content := scope.content(split_input)) is None:
        raise ReadError(
            f"op {node_name(op)!r}: how many tensors it makes depends on the data, "
            f"{split_input!r}: make that a constant of the model"
        )
    sizes = onnx.numpy_helper.to_array(content)
    if sizes.ndim:
        return [int(size) for size in sizes]
    return _equal(total, max(int(sizes), 1))


def _equal(total: int, step: int) -> Sequence[int]:
    """Sizes of parts, all `step` except the last; a mere range if there are too many to list."""
    starts = range(0, total, step)
    return starts if len(starts) > MOST_PARTS else [min(step, total - start) for start in starts]


def _number(op: Any, name: str, default: int) -> int:
    return next((int(a.i) for a in op.attribute if a.name == name), default)


_ON_LISTS: dict[str, Callable[[Any, Scope, Maker], list[Any]]] = {
    "ConcatFromSequence": _concatenate,
    "Identity": _same,
    "Optional": _same,
    "OptionalGetElement": _element,
    "OptionalHasElement": _has_element,
    "SequenceAt": _at,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
}
"""Ops whose first input is a sequence or an optional."""

_ON_TENSORS: dict[str, Callable[[Any, Scope, Maker], list[Any]]] = {
    "Optional": _construct,
    "OptionalGetElement": _element,
    "OptionalHasElement": _has_element,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _construct,
    "SplitToSequence": _split,
}
"""Ops that make sequences and optionals of tensors, or take a tensor for an optional."""
