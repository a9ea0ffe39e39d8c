"""The module and the line of an op, for messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from situate.torch_capture import names
from situate.torch_capture.refusals.lines import user_line_in

if TYPE_CHECKING:
    from torch import fx


def place(node: fx.Node) -> str:
    """Such as `layers.0, mine.py:12`: the module of an op, and the line that calls it."""
    module = names.module(node) or "the model"
    line = user_line_in(node.meta.get("stack_trace") or "").removesuffix(": ")
    return f"{module}, {line}" if line else module


def places(nodes: Sequence[fx.Node]) -> str:
    """Such as `2 ops, the first of layers.0, mine.py:12`."""
    many = f"{len(nodes)} ops, the first" if len(nodes) > 1 else "an op"
    return f"{many} of {place(nodes[0])}"
