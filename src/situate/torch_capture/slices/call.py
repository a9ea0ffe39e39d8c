"""The call of an operator in a trace, by its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import fx


def name_of(node: fx.Node) -> str:
    """The name of an operator, such as `mean`."""
    return str(getattr(node.target, "overloadpacket", node.target)).rpartition(".")[2]


def given(node: fx.Node) -> dict[str, Any]:
    """The arguments of a call by name, those that are left out among them."""
    target: Any = node.target
    known = target._schema.arguments
    defaults = {a.name: a.default_value for a in known if a.has_default_value()}
    positional = zip((a.name for a in known), node.args, strict=False)
    return defaults | dict(positional) | dict(node.kwargs)
