"""The letters of each operator, one file a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from situate.torch_capture.cuts.letters import Letter
from situate.torch_capture.cuts.rules import (
    attention,
    convolutions,
    dropout,
    lookups,
    losses,
    pointwise,
    products,
    reductions,
    tables,
    views,
)
from situate.torch_capture.nodes import operator_name

if TYPE_CHECKING:
    from torch import fx

RULES = {
    **reductions.RULES,
    **views.RULES,
    **products.RULES,
    **attention.RULES,
    **tables.RULES,
    **lookups.RULES,
    **losses.RULES,
    **convolutions.RULES,
    **dropout.RULES,
}
"""By operator, such as `mm`, the function that returns its letters."""


def letters(node: fx.Node) -> list[Letter]:
    """The letters of a call; empty where no rule knows the operator, which then stays whole."""
    name = operator_name(node)
    if name in RULES:
        return RULES[name](node)
    return pointwise.letters(node) if pointwise.is_pointwise(node, name) else []
