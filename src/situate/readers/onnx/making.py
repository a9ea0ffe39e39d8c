"""Nodes of standard operators that stand in place of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

AXES_ARE_INPUTS = 13
"""The first version with axes and sizes as inputs instead of attributes."""


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    """A node of the standard domain."""
    import onnx

    return onnx.helper.make_node(kind, inputs, outputs, **attributes)


def constant(name: str, numbers: Sequence[int], shape: Sequence[int], kind: str = "INT64") -> Any:
    """A node that makes a value of these numbers."""
    import onnx

    number = onnx.TensorProto.DataType.Value(kind)
    return node("Constant", [], [name], value=onnx.helper.make_tensor("", number, shape, numbers))


@dataclass(frozen=True)
class Maker:
    """Makes nodes in a version of the standard operators."""

    version: int
    fresh: Callable[[str], str]
    """Makes a name that no value has."""

    def views(self, kind: str, names: Sequence[str], axis: int) -> tuple[list[Any], list[str]]:
        """`Squeeze` or `Unsqueeze` of each value: the nodes and their outputs."""
        outputs = [self.fresh(f"{name}/{kind}") for name in names]
        pairs = zip(names, outputs, strict=True)
        if self.version < AXES_ARE_INPUTS:
            return [node(kind, [a], [b], axes=[axis]) for a, b in pairs], outputs
        axes = constant(self.fresh(f"{kind}/axes"), [axis], [1])
        return [axes, *(node(kind, [a, axes.output[0]], [b]) for a, b in pairs)], outputs

    def split(
        self, name: str, value: str, sizes: Sequence[int], axis: int
    ) -> tuple[list[Any], list[str]]:
        """`Split` into parts of these sizes: the nodes and their outputs."""
        outputs = [self.fresh(f"{value}/part") for _ in sizes]
        if not outputs:
            return [], []
        if self.version < AXES_ARE_INPUTS:
            return [node("Split", [value], outputs, axis=axis, split=sizes, name=name)], outputs
        part_sizes = constant(self.fresh(f"{value}/sizes"), sizes, [len(sizes)])
        return [
            part_sizes,
            node("Split", [value, part_sizes.output[0]], outputs, axis=axis, name=name),
        ], outputs
