"""Complete types for a node's outputs, from inferred, stated and given ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from situate.errors import ReadError
from situate.readers.onnx.dims import Notes, Sizes, option
from situate.readers.onnx.names import node_name
from situate.readers.onnx.scope import Scope
from situate.readers.onnx.sequences import refusal
from situate.readers.onnx.types import Open, check_rank, collection, element, shape_of, tensor


class Settler:
    """Decides the types of outputs: inferred types come first, then stated, then assumed ones."""

    def __init__(self, dim_sizes: Sizes, notes: Notes, used_values: Collection[str]) -> None:
        self.dim_sizes, self.notes, self._used_values = dim_sizes, notes, used_values

    def settle(self, node: Any, scope: Scope, types: Mapping[str, Any], reason: str) -> None:
        """Bind every output of the node in `scope`.

        Args:
            types: the inferred types; they may lack sizes that depend on the data.
            reason: onnx's objection to the node; empty without one.

        Raises:
            ReadError: a shape cannot be inferred, contradicts a given size, or is of no tensor.
        """
        # Types that follow from an assumed one are assumed, too.
        if not self.notes.assumed.isdisjoint(node.input):
            self.notes.assumed.update(node.output)
        for place, name in enumerate(node.output):
            if not name:
                continue
            stated = scope.stated.get(name)
            kind = types.get(name)
            if which := collection(kind if kind is not None else stated):
                raise refusal(f"op {node_name(node)!r}", name, which)
            shape = self._shape(name, shape_of(kind), self._numbers(stated, shape_of(kind)))
            if shape is None and types and name not in self._used_values:
                node.output[place] = ""  # an output that is optional and that nobody asks for
            elif shape is None or None in shape:
                origin = self.dim_sizes.origin(name)
                raise _unknown(node, origin, shape, bool(types), reason, self.notes)
            else:
                check_rank(name, shape)
                if reason:
                    self.notes.trusted.append(name)
                scope.bind(name, tensor(_element(node, scope, kind, stated), shape))

    def _numbers(self, stated: Any, inferred: Open | None) -> Open | None:
        """The shape that the model states; symbolic dimensions get their sizes if inference has
        none."""
        if (shape := shape_of(stated)) is None:
            return None
        names = [dim.dim_param for dim in stated.tensor_type.shape.dim]
        inferred_sizes = inferred if inferred is not None and len(inferred) == len(shape) else ()
        numbers = list(shape)
        for axis, (name, size) in enumerate(zip(names, shape, strict=True)):
            if name and size is None and (not inferred_sizes or inferred_sizes[axis] is None):
                numbers[axis] = self.dim_sizes.symbol(name)
        return tuple(numbers)

    def _shape(self, name: str, inferred: Open | None, stated: Open | None) -> Open | None:
        """The shape, with None where only the caller can know the size; None if the rank is unknown
        too."""
        if inferred is None:
            shape = self.dim_sizes.shape(name) if stated is None else stated
            return None if shape is None else self.dim_sizes.fill(name, shape)
        shape = self.dim_sizes.fill(name, self._joined(name, inferred, stated))
        if open_axes := [axis for axis, size in enumerate(shape) if size is None]:
            self.notes.data[self.dim_sizes.origin(name)] = open_axes
            self.notes.assumed.add(name)
        return tuple(1 if size is None else size for size in shape)

    def _joined(self, name: str, inferred: Open, stated: Open | None) -> Open:
        """The inferred shape before the stated one, unless inference had to assume something."""
        if stated is None:
            return inferred
        if name in self.notes.assumed:
            return _filled(stated, inferred)
        if not _agree(inferred, stated):
            self.notes.contradicted.append(name)
        return _filled(inferred, stated)


def _filled(one: Open, other: Open) -> Open:
    """The first shape, with sizes of the second in place of its unknown ones."""
    if len(one) != len(other):
        return one
    return tuple(b if a is None else a for a, b in zip(one, other, strict=True))


def _agree(one: Open, other: Open) -> bool:
    """True if two shapes may be the same."""
    return len(one) == len(other) and all(
        None in pair or pair[0] == pair[1] for pair in zip(one, other, strict=True)
    )


def _element(node: Any, scope: Scope, kind: Any, stated: Any) -> int:
    """The element type of an output; by default that of the first input."""
    first = next((scope.types[name] for name in node.input if name in scope.types), None)
    return element(kind) or element(stated) or element(first)


def _unknown(
    node: Any, name: str, shape: Open | None, is_output: bool, reason: str, notes: Notes
) -> ReadError:
    where = f"op {node_name(node)!r}"
    if reason:
        return ReadError(f"shape inference failed: {where}: {reason}{notes.hint()}")
    kind = f"{node.domain}.{node.op_type}".lstrip(".")
    why = "it depends on the data" if is_output else f"{kind} has no shape inference here"
    axes = range(2) if shape is None else [a for a, size in enumerate(shape) if size is None]
    options = " ".join(option(name, axis) for axis in axes)
    suffix = " ... for each of its axes" if shape is None else ""
    return ReadError(
        f"{where}: the shape of {name!r} cannot be inferred ({why}): give it by {options}{suffix}, "
        "or state it in the model (value_info)"
    )
