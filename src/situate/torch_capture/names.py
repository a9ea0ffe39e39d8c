"""Readable, unique and stable names: the path of the module an op came from, then the op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from situate.data.update_rule import CLIP

if TYPE_CHECKING:
    from torch import fx

COMPILED = "_orig_mod"
"""Attribute of a module that `torch.compile` made: the module inside it."""

SLICE = "slice"
"""Notes, in what is noted of a node, the number of the slice of the batch that it is of."""

REPLICA = "replica"
"""Notes, in what is noted of a node, the number of the replica of the parameters that it is of."""

INPUT = "input"
"""Notes of an input of a slice its number among the inputs of the whole step."""

AGAIN = "again"
"""Notes of a node that runs an op of the forward pass again that op's node."""

AFTER = "after"
"""Notes of a node the node that must have ended before, though it reads nothing of it."""

NAME = "name"
"""Notes of a node that was added to a step what its op is to be called."""


def path(descriptor: object) -> str:
    """The name in the user's model of the parameter or buffer that PyTorch describes, or empty."""
    return path_of(str(getattr(descriptor, "target", "")))


def state_name(node: fx.Node) -> str:
    """The name of the parameter or buffer behind a placeholder or constant; empty for others."""
    return str(node.target) if node.op == "get_attr" else path(node.meta.get("desc"))


def module(node: fx.Node) -> str | None:
    """Path of the module in the user's model; `loss` outside of it, None where unknown."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return None
    deepest = str(list(stack.values())[-1][0]).partition("@")[0]
    return uncompiled(path_of(deepest)) if deepest else "loss"


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
    """`layer1.0.conv2/convolution`; the number that makes it unique comes later."""
    last = kind_name.rpartition(".")[2].strip("_")
    return f"{module_path}/{last}" if module_path else last


def in_part(node: fx.Node, text: str) -> str:
    """The name behind that of the slice or the replica that a node is of, as in
    `slice0/fc/addmm`, and behind `recompute` where it runs an op again."""
    parts = [f"{kind}{node.meta[kind]}" for kind in (SLICE, REPLICA) if kind in node.meta]
    again = ["recompute"] if AGAIN in node.meta else []
    return "/".join([*again, *parts, text])


def path_of(text: str) -> str:
    """The name in the user's model: that is an attribute, `model`, of the step that is captured."""
    return "" if text == "model" else text.removeprefix("model.")
