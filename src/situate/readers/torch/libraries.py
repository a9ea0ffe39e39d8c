"""What can be done about a library's own code, which its user cannot rewrite."""

from __future__ import annotations

import sys

from situate.readers.torch.lines import inside_package

VALUES = "this line of {} depends on the values of a tensor, which capture does not know: {}"
OTHER = (
    "look for an argument of the model that leaves it out or fixes it, or do it outside the step"
)
FUNCTION = (
    "it is {}'s own: let the module that calls it infer (eval(), where the model is built), if "
    "that leaves it out, or plan inference"
)


def library_remedy(filename: str) -> str:
    """What is said of a line of a library that depends on values; empty for a line of the user's
    own."""
    inside = inside_package(filename)
    return VALUES.format(_package(inside), OTHER) if inside else ""


def function_remedy(kind: type) -> str:
    """What is said of a function with a gradient of its own that a library has; empty for the
    user's own."""
    module = sys.modules.get(kind.__module__)
    inside = inside_package(getattr(module, "__file__", None) or "")
    return FUNCTION.format(_package(inside)) if inside else ""


def _package(inside: str) -> str:
    return inside.partition("/")[0].removesuffix(".py")
