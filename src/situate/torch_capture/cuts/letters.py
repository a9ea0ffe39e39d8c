"""Letters of an op: the dimensions along which it can be cut, as in the subscripts of an einsum."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch import fx

    from situate.torch_capture.cuts.writer import Writer


@dataclass(frozen=True)
class Axis:
    """The positions of a letter in a tensor's dimension.

    The dimension has `outer` x `units` x `inner` entries, row-major, where `units` is the size of
    the letter. A part takes a range of units for every outer index, so it is one range of entries
    only if `outer` is 1. The fused weights of queries, keys and values have `outer` 3.
    """

    dim: int
    outer: int = 1
    inner: int = 1


Output = Axis | Literal["sum", "once"] | None
"""An output of an op that is cut: parts along an axis; partial results, whose sum is the output;
the same in every part, so that the first stands for all; or no output at all."""


@dataclass(frozen=True)
class Piece:
    """The part of a letter that one op takes.

    Attributes:
        number: of the part.
        begin, end: the first unit, and the unit after the last.
        units: of all parts together.
    """

    number: int
    begin: int
    end: int
    units: int

    @property
    def length(self) -> int:
        """The number of units."""
        return self.end - self.begin

    def of(self, size: int) -> int:
        """The part's entries of `size` entries, which are a multiple of all units."""
        return size * self.length // self.units


Sizes = Callable[[Mapping[str, Any], Piece], Mapping[str, Any]]
"""The arguments of a part that differ from those of the whole op, and are no tensors: by name,
from all arguments by name."""

Write = Callable[["Writer", "fx.Node", Sequence["Local"]], "list[list[fx.Node]]"]
"""Writes the parts of an op in another way than by calls of the same operator: by output, the nodes
of its parts, or one node where the output is `once`."""


@dataclass(frozen=True)
class Letter:
    """A letter of an op.

    Attributes:
        size: the number of its units.
        inputs: by operand (see `operands`), its axis; None where every part reads the whole.
        outputs: by output.
        sizes: the other arguments of a part; None if they are those of the whole op.
        write: how parts are written; None for calls of the op itself.
        kind: such as `heads`, where the operator says so.
        is_numbered: True if the numbers of the units matter, as those of classes do. A class then
            divides the letter in a single range.
    """

    size: int
    inputs: tuple[Axis | None, ...]
    outputs: tuple[Output, ...]
    sizes: Sizes | None = None
    write: Write | None = None
    kind: str = ""
    is_numbered: bool = False

    @property
    def is_contracted(self) -> bool:
        """True if some output is a sum over the letter."""
        return "sum" in self.outputs


@dataclass(frozen=True)
class Local:
    """The arguments of one part.

    Attributes:
        piece: of the letter.
        operands: the nodes that the part reads, as `operands` lists them.
        args, kwargs: with these nodes, and with the part's own sizes.
    """

    piece: Piece
    operands: tuple[fx.Node, ...]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def operands(node: fx.Node) -> list[fx.Node]:
    """The nodes in the arguments of a call, in order, each as often as it occurs."""
    from torch import fx

    nodes: list[fx.Node] = []
    fx.map_arg((node.args, node.kwargs), nodes.append)
    return nodes


def local(node: fx.Node, letter: Letter, piece: Piece, own: Sequence[fx.Node]) -> Local:
    """The arguments of a part that reads these nodes in place of the op's operands."""
    from torch import fx

    remaining = iter(own)
    # `map_arg` comes to the nodes in the order of `operands`.
    args, kwargs = fx.map_arg((node.args, node.kwargs), lambda _: next(remaining))
    if letter.sizes is not None:
        args, kwargs = _with(node, args, kwargs, letter.sizes(arguments(node), piece))
    return Local(piece, tuple(own), args, kwargs)


def arguments(node: fx.Node) -> dict[str, Any]:
    """The arguments of a call by name, without those that it leaves out."""
    target: Any = node.target
    names = (argument.name for argument in target._schema.arguments)
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def _with(
    node: fx.Node, args: tuple[Any, ...], kwargs: Mapping[str, Any], changed: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with other values of some."""
    target: Any = node.target
    names = [argument.name for argument in target._schema.arguments]
    positional = tuple(changed.get(name, value) for name, value in zip(names, args, strict=False))
    return positional, {name: changed.get(name, value) for name, value in kwargs.items()}


def is_item(node: fx.Node) -> bool:
    """True for an output of a call that has several."""
    from torch import fx

    return node.target is operator.getitem and isinstance(node.args[0], fx.Node)


def item_of(node: fx.Node) -> tuple[fx.Node, int]:
    """The call and the number of the output that an item is."""
    source: Any = node.args[0]
    number: Any = node.args[1]
    return source, number


def shape(node: fx.Node, output: int = 0) -> tuple[int, ...]:
    """The shape of a node's output."""
    value = node.meta["val"]
    tensor = value[output] if isinstance(value, (list, tuple)) else value
    return tuple(tensor.shape)
