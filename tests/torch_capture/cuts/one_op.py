"""One op with real numbers, cut along each of its letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, fx
from torch._subclasses import FakeTensorMode
from torch.utils._pytree import tree_map_only

from situate.torch_capture.cuts.letters import Axis, Letter, Piece, local, operands
from situate.torch_capture.cuts.rules import letters
from situate.torch_capture.cuts.writer import FakeResults, Writer


class OneOp:
    """A call of an operator with real arguments, in a graph of its own."""

    def __init__(self, op: Any, *args: Any, **kwargs: Any) -> None:
        self.mode, self.graph = FakeTensorMode(), fx.Graph()
        self.real: dict[fx.Node, Any] = {}
        own, named = fx.node.map_aggregate((args, kwargs), self._placed)
        self.node = self.graph.call_function(op, own, named)
        fakes = fx.map_arg((own, named), lambda node: node.meta["val"])
        with self.mode:
            self.node.meta["val"] = op(*fakes[0], **fakes[1])
        self.result = _tuple(op(*args, **kwargs))

    def letters(self) -> list[Letter]:
        return letters(self.node)

    def in_parts(self, letter: Letter, bounds: Sequence[int], ranges: int) -> Iterator[Any]:
        """The outputs of the op, put together from those of its parts; None for those that it
        lacks."""
        writer = Writer(fx.Graph(), FakeResults())
        units = letter.size // ranges
        real: dict[fx.Node, Any] = {}
        parts = []
        for i, (begin, end) in enumerate(pairwise(bounds)):
            piece, own = Piece(i, begin, end, units), []
            for operand, axis in zip(operands(self.node), letter.inputs, strict=True):
                value = self.real[operand]
                value = value if axis is None else _part(value, axis, ranges, piece)
                node = writer.graph.placeholder(f"x{len(real)}")
                node.meta["val"], real[node] = self.mode.from_tensor(value), value
                own.append(node)
            parts.append(local(self.node, letter, piece, own))
        with self.mode:
            outputs = self._written(writer, letter, parts)
        for node in writer.graph.nodes:
            if node.op == "call_function":
                args, kwargs = fx.map_arg((node.args, node.kwargs), real.__getitem__)
                real[node] = node.target(*args, **kwargs)
                _check_layout(node, real[node])
        for k, (output, whole) in enumerate(zip(letter.outputs, self.result, strict=True)):
            if output is None:
                yield None
                continue
            values = [real[node] for node in outputs[k]]
            yield _together(output, values, whole, bounds, ranges)

    def _written(self, writer: Writer, letter: Letter, parts: Any) -> list[list[fx.Node]]:
        if letter.write is not None:
            return letter.write(writer, self.node, parts)
        calls = [
            writer.call(self.node, self.node.target, p.args, p.piece.number, p.kwargs)
            for p in parts
        ]
        if len(self.result) == 1 and not isinstance(self.node.meta["val"], (list, tuple)):
            return [calls]
        return [
            [writer.item(call, k) for call in calls] if letter.outputs[k] is not None else []
            for k in range(len(self.result))
        ]

    def _placed(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        node = self.graph.placeholder(f"x{len(self.real)}")
        node.meta["val"], self.real[node] = self.mode.from_tensor(value), value
        return node


def check_all(op: Any, *args: Any, **kwargs: Any) -> list[Letter]:
    """The letters of a call, after each gave the results of the whole op, cut in equal and unequal
    parts and in several ranges."""
    # In double precision other kernels of a part explain no difference.
    one = OneOp(op, *(_double(value) for value in args), **_double(kwargs))
    for letter in one.letters():
        for ranges in (1, 2, 3):
            units = letter.size // ranges
            if letter.size % ranges or units < 2 or (letter.is_numbered and ranges > 1):
                continue
            for bounds in {(0, units // 2, units), (0, 1, units), (0, (units + 2) // 3, units)}:
                results = one.in_parts(letter, bounds, ranges)
                _check_equal(one, letter, results)
    return one.letters()


def _double(value: Any) -> Any:
    def converted(tensor: Tensor) -> Tensor:
        return tensor.double() if tensor.is_floating_point() else tensor

    return tree_map_only(Tensor, converted, value)


def _check_equal(one: OneOp, letter: Letter, results: Iterator[Any]) -> None:
    for k, (value, whole) in enumerate(zip(results, one.result, strict=True)):
        if value is not None and whole is not None:
            message = f"output {k} of {one.node.target} along {letter}"
            torch.testing.assert_close(value, whole, rtol=1e-9, atol=1e-9, msg=message)


def _check_layout(node: fx.Node, value: Any) -> None:
    for real, fake in zip(_tuple(value), _tuple(node.meta["val"]), strict=True):
        if isinstance(real, Tensor) and isinstance(fake, Tensor):
            assert (real.shape, real.dtype) == (fake.shape, fake.dtype), node.format_node()


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _split(value: Tensor, axis: Axis, ranges: int) -> Tensor:
    return value.unflatten(axis.dim, (axis.outer * ranges, -1))


def _place(size: int, piece: Piece) -> tuple[int, int]:
    unit = size // piece.units
    return piece.begin * unit, piece.length * unit


def _part(value: Tensor, axis: Axis, ranges: int, piece: Piece) -> Tensor:
    split = _split(value, axis, ranges)
    begin, length = _place(split.shape[axis.dim + 1], piece)
    own = split.narrow(axis.dim + 1, begin, length)
    return own.flatten(axis.dim, axis.dim + 1).clone()


def _together(
    output: Any, values: list[Tensor], whole: Tensor, bounds: Sequence[int], ranges: int
) -> Tensor:
    if output == "once":
        return values[0]
    if output == "sum":
        return torch.stack(values).sum(0).to(whole.dtype)
    split = [_split(value, output, ranges) for value in values]
    return torch.cat(split, output.dim + 1).flatten(output.dim, output.dim + 1)
