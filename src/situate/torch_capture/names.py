"""Readable and stable names: the path of the module that an op came from, then the op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from situate.data.update_rule import CLIP

if TYPE_CHECKING:
    from torch import fx

COMPILED = "_orig_mod"
"""The attribute that holds the original module in a module that `torch.compile` made."""

SLICE = "slice"
"""Key in a node's `meta`: the number of its slice of the batch."""

REPLICA = "replica"
"""Key in a node's `meta`: the number of its replica of the parameters."""

PART = "part"
"""Key in a node's `meta`: the number of its part of an op that is cut."""

DRAW = "draw"
"""Key in the `meta` of a part of an op that draws random numbers: a name that all its parts
share."""

INPUT = "input"
"""Key in the `meta` of a slice's input: its number among the inputs of the whole step."""

AGAIN = "again"
"""Key in the `meta` of a recomputed node: the node of the forward pass that it repeats."""

AFTER = "after"
"""Key in a node's `meta`: a node that must end before, though it provides no data."""

NAME = "name"
"""Key in the `meta` of an added node: the name of its op."""

CRITERION = "criterion"
"""Key in a node's `meta`: the class of the loss module that it belongs to, and the line that made
the module."""


def path(descriptor: object) -> str:
    """The name in the user's model of the parameter or buffer that a descriptor is about, or
    empty."""
    return path_of(str(getattr(descriptor, "target", "")))


def state_name(node: fx.Node) -> str:
    """The name of the parameter or buffer behind a placeholder or constant; empty for other
    nodes."""
    return str(node.target) if node.op == "get_attr" else path(node.meta.get("desc"))


def module(node: fx.Node) -> str | None:
    """Path of the module in the user's model; `loss` outside of it, None if unknown."""
    # AOTAutograd keeps the forward op's stack on backward nodes under the second key.
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return None
    # Export appends `@1`, `@2` and so on to the path of a module that is called repeatedly.
    deepest = str(list(stack.values())[-1][0]).partition("@")[0]
    return uncompiled(path_of(deepest)) if deepest else "loss"


def module_class(node: fx.Node) -> tuple[str, str] | None:
    """Path and class of the module that an op came from; None if either is unknown."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    where = module(node)
    if not stack or where is None:
        return None
    return where, str(list(stack.values())[-1][1])


def uncompiled(path_in_model: str) -> str:
    """The same path without the modules that `torch.compile` puts around others."""
    return ".".join(part for part in path_in_model.split(".") if part != COMPILED)


def is_outside(module_path: str) -> bool:
    """True for a module path outside of the model: the loss, or clipping."""
    return module_path == "loss" or module_path.startswith(CLIP)


def kind(node: fx.Node) -> str:
    """Operator type, such as `aten.convolution`."""
    return str(getattr(node.target, "overloadpacket", node.target))


def op_name(module_path: str, kind_name: str) -> str:
    """A name such as `layer1.0.conv2/convolution`, which may still occur more than once."""
    last = kind_name.rpartition(".")[2].strip("_")
    return f"{module_path}/{last}" if module_path else last


def in_part(node: fx.Node, text: str) -> str:
    """The name with prefixes for the node's slice, replica and part, as in `slice0/fc/addmm`, and
    for recomputation."""
    parts = [f"{kind}{node.meta[kind]}" for kind in (SLICE, REPLICA, PART) if kind in node.meta]
    again = ["recompute"] if AGAIN in node.meta else []
    return "/".join([*again, *parts, text])


def path_of(text: str) -> str:
    """The name in the user's model, which is the attribute `model` of the captured step."""
    return "" if text == "model" else text.removeprefix("model.")
