"""Sizes that the caller gives: of symbolic dimensions, of axes of values, of iterations."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from situate.errors import ReadError, nearest
from situate.readers.onnx.names import graphs_of, node_name, nodes_of
from situate.readers.onnx.types import Open, collection, shape_of

ITERATIONS = "iterations"
"""The axis name for a loop's trip count."""


@dataclass(frozen=True)
class Sizes:
    """The sizes in `dims`, by their subject."""

    symbols: dict[str, int] = field(default_factory=dict)
    """Sizes of symbolic dimensions."""
    axes: dict[str, dict[int, int]] = field(default_factory=dict)
    """Sizes of axes of values by their name."""
    iterations: dict[str, int] = field(default_factory=dict)
    """Trip counts of loops by their name."""
    used: set[str] = field(default_factory=set)
    """The keys of `dims` that determined a size."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Original names of values that were renamed when a body replaced its op."""

    def origin(self, name: str) -> str:
        """The name of a value or loop in the model."""
        return self.renamed.get(name, name)

    def trips(self, name: str) -> int | None:
        """The given trip count of a loop."""
        self.used.add(f"{self.origin(name)}.{ITERATIONS}")
        return self.iterations.get(self.origin(name))

    def symbol(self, name: str) -> int | None:
        """The size of a symbolic dimension; None without one."""
        self.used.add(name)
        return self.symbols.get(name)

    def check_used(self, dims: Iterable[str]) -> None:
        """Check that every entry of `dims` determined a size.

        Raises:
            ReadError: an entry for an unknown value, or for one with a size of its own.
        """
        if unused := [key for key in dims if key not in self.used]:
            raise ReadError(
                f"dims: {unused[0]!r} gives nothing a size: what has that name has one, or is in a "
                "branch that does not run"
            )

    def shape(self, name: str) -> Open | None:
        """The shape of a value of unknown rank, if all axes up to the last one have sizes."""
        axes = self.axes.get(self.origin(name), {})
        complete = axes and sorted(axes) == list(range(len(axes)))
        return tuple(axes[axis] for axis in sorted(axes)) if complete else None

    def fill(self, name: str, shape: Open) -> Open:
        """The shape with the given sizes of the value.

        Raises:
            ReadError: an unknown axis, or one with another size.
        """
        filled = list(shape)
        name = self.origin(name)
        for axis, size in self.axes.get(name, {}).items():
            if axis >= len(shape):
                raise ReadError(f"dims: {name!r} has {len(shape)} axes, counted from 0: no {axis}")
            if (stated := shape[axis]) not in (None, size):
                raise ReadError(f"dims: axis {axis} of {name!r} is {stated}, and not {size}")
            filled[axis] = size
            self.used.add(f"{name}.{axis}")
        return tuple(filled)


def option(name: str, axis: int | str) -> str:
    """The option of the command line that gives a size, quoted for a shell."""
    return f"--dim {shlex.quote(f'{name}.{axis}')}=SIZE"


def sizes(graph: Any, dims: Mapping[str, int]) -> Sizes:
    """The sizes that `dims` gives, in a graph without functions.

    Raises:
        ReadError: a dimension or value that the model does not have, a size that is not positive.
    """
    symbols = {d.dim_param for value in _stated(graph) for d in _dims(value) if d.dim_param}
    loops = {node_name(node) for node in nodes_of(graph) if node.op_type == "Loop"}
    values = {value.name for value in graph.input}
    values |= {name for node in nodes_of(graph) for name in node.output if name}
    result = Sizes()
    for key, size in dims.items():
        _check_size(key, size)
        name, _, last = str(key).rpartition(".")
        # Nine digits are more than any axis, and Python refuses to parse thousands of digits.
        axis = int(last[:9]) if last.isascii() and last.isdecimal() else None
        if key in symbols:
            result.symbols[key] = size
        elif axis is not None and name in values:
            result.axes.setdefault(name, {})[axis] = size
        elif last == ITERATIONS and name in loops:
            result.iterations[name] = size
        else:
            raise ReadError(_unknown(key, graph, symbols, values))
    return result


def _check_size(key: object, size: object) -> None:
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= 2**31:
        raise ReadError(f"dims: {key!r} must be a whole number from 1 to 2^31, got {size!r}")


def _unknown(key: object, graph: Any, symbols: set[str], values: set[str]) -> str:
    name, _, last = str(key).rpartition(".")
    if name and last.isdecimal():
        return f"dims: the model has no value {name!r}{nearest(name, values)}"
    inputs = [value for value in graph.input if not collection(value.type)]
    dimensions = {f"{v.name}.{axis}" for v in inputs for axis in _open(v.type)} | symbols
    hint = nearest(str(key), dimensions) or "; every dimension of its inputs has a size"
    return f"dims: the model has no dimension {key!r}{hint}"


def _stated(graph: Any) -> Iterator[Any]:
    for inner in graphs_of(graph):
        yield from (*inner.input, *inner.value_info, *inner.output)


def _dims(value: Any) -> Iterator[Any]:
    yield from value.type.tensor_type.shape.dim


def _open(kind: Any) -> list[int]:
    """Axes without a positive number or a name."""
    dims = kind.tensor_type.shape.dim
    return [axis for axis, d in enumerate(dims) if not d.dim_param and d.dim_value <= 0]


def fix_inputs(graph: Any, fixed: Sizes) -> dict[str, str]:
    """Give every dimension of the inputs a number; return warnings for dimensions of assumed size
    1, with the options that set them.

    Raises:
        ReadError: a size that contradicts the model or another one, an input of unknown rank.
    """
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [v for v in graph.input if v.name not in constants and not collection(v.type)]
    symbols = dict(fixed.symbols)
    for value in inputs:
        _name_axes(value, fixed, symbols)
    dimensions = {d.dim_param for v in inputs for d in _dims(v) if d.dim_param}
    fixed.used.update(dimensions)
    defaults = dict.fromkeys(dimensions - symbols.keys(), 1)
    fixed.symbols.update(symbols | defaults)
    warnings = [_split_axis(name) for name in sorted(defaults)]
    return dict([*warnings, *(pair for value in inputs for pair in _fix(value, fixed))])


def _split_axis(name: str) -> tuple[str, str]:
    text = f"--dim {shlex.quote(name)}=SIZE"
    python = f"(in Python: dims={{{name!r}: SIZE}})"
    return f"dimension {name!r} is taken as 1; {text} {python} gives it a size", text


def _name_axes(value: Any, fixed: Sizes, symbols: dict[str, int]) -> None:
    """Take the size of a named axis as the size of its name."""
    dims = list(_dims(value))
    for axis, size in fixed.axes.get(value.name, {}).items():
        name = dims[axis].dim_param if axis < len(dims) else ""
        if name and symbols.setdefault(name, size) != size:
            raise ReadError(
                f"dims: axis {axis} of {value.name!r} is dimension {name!r}, which is given as "
                f"{symbols[name]} and as {size}: give one size"
            )


def _fix(value: Any, fixed: Sizes) -> Iterator[tuple[str, str]]:
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        _set_shape(value, fixed)
    for dim in _dims(value):
        if dim.dim_param:
            dim.dim_value = fixed.symbols[dim.dim_param]
    open_axes = _open(value.type)
    for axis in open_axes:
        # Some exporters write 0 or -1 for an open dimension.
        kind.shape.dim[axis].ClearField("dim_value")
    shape = fixed.fill(value.name, shape_of(value.type) or ())
    for dim, size in zip(_dims(value), shape, strict=True):
        # A size that nobody gives is 1, with a warning.
        dim.dim_value = size or 1
    if default_axes := [axis for axis in open_axes if axis not in fixed.axes.get(value.name, {})]:
        options = " ".join(option(value.name, axis) for axis in default_axes)
        python = ", ".join(f"{f'{value.name}.{axis}'!r}: SIZE" for axis in default_axes)
        warning = (
            f"input {value.name!r}: dimensions without a size are taken as 1; {options} (in "
            f"Python: dims={{{python}}}) gives them sizes"
        )
        yield warning, options


def _set_shape(value: Any, fixed: Sizes) -> None:
    """The shape of an input that the model gives none."""
    if (shape := fixed.shape(value.name)) is None:
        raise ReadError(
            f"input {value.name!r} has no shape; {option(value.name, 0)}, "
            f"{option(value.name, 1)}, ... for each of its axes gives it one"
        )
    for size in shape:
        value.type.tensor_type.shape.dim.add(dim_value=size)


# Notes to the caller about the inference of shapes.
@dataclass
class Notes:
    """Names of values and nodes, by the assumption about them."""

    assumed: set[str] = field(default_factory=set)
    """Values whose shape or content may depend on a dimension of assumed size 1."""
    defaults: list[str] = field(default_factory=list)
    """Options for the sizes of input dimensions of assumed size 1."""
    data: dict[str, list[int]] = field(default_factory=dict)
    """Axes that depend on data, by value; their size is assumed to be 1."""
    contradicted: list[str] = field(default_factory=list)
    """Values of other shapes than the model states."""
    trusted: list[str] = field(default_factory=list)
    """Values with a stated shape only, because inference rejects their node."""
    unequal: list[str] = field(default_factory=list)
    """Values that the branches of an If make in different shapes."""
    loops: list[str] = field(default_factory=list)
    """Loops of unknown trip count."""
    changing: list[str] = field(default_factory=list)
    """Carried values of loops whose shape changes."""

    def warnings(self) -> Iterator[str]:
        """A line for each kind of note."""
        if self.data:
            have = _have(list(self.data), "dimensions that depend on the data, taken as 1")
            yield f"{have}; {_some(self._options(), ' ')} gives them sizes"
        if self.contradicted:
            yield _have(self.contradicted, "another shape than the model states, and it is taken")
        if self.trusted:
            yield _have(self.trusted, "the shape that the model states: inference rejects their op")
        if self.unequal:
            yield _have(self.unequal, "a shape that depends on the branch taken; the larger counts")
        for loop in self.loops:
            yield (
                f"loop {loop!r} counts as one iteration, since its trip count depends on the data; "
                f"{option(loop, ITERATIONS)} gives another"
            )
        if self.changing:
            yield _have(self.changing, "another shape in every iteration; the first one's counts")

    def hint(self) -> str:
        """A possible reason for contradicting shapes."""
        options = [*self.defaults, *self._options()]
        return f"; {_some(options, ' ')} gives sizes to what is taken as 1" if options else ""

    def _options(self) -> list[str]:
        return [option(name, axis) for name, axes in self.data.items() for axis in axes]


def _have(names: list[str], noun: str) -> str:
    have = "1 value has" if len(names) == 1 else f"{len(names)} values have"
    return f"{have} {noun}: {_some(list(map(repr, names)), ', ')}"


def _some(texts: list[str], mark: str) -> str:
    """The first three."""
    return mark.join(texts[:3]) + (f"{mark}..." if len(texts) > 3 else "")
