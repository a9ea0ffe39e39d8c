"""Kernels that write their result where they are told: what crosses is then computed where its
receivers read it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch
    from torch import fx
    from torch._ops import OpOverload


class Into(NamedTuple):
    """The qualified name of a kernel, such as `aten::add.out`, and the argument that says where its
    result goes."""

    name: str
    argument: str


def into(node: fx.Node) -> Into | None:
    """The kernel that does what a node does and writes where it is told; None where there is none,
    where it would copy as far as PyTorch tells, or where it needs more room than its result: losses
    that are reduced first fill what they are told with all that they reduce."""
    import torch

    if node.op != "call_function" or not isinstance(node.meta["val"], torch.Tensor):
        return None
    return _into(node.target)


@cache
def _into(operator: OpOverload) -> Into | None:
    import torch

    given = operator._schema.arguments
    draws = torch.Tag.nondeterministic_seeded in operator.tags
    if draws or any(argument.name == "reduction" for argument in given):
        return None
    packet = operator.overloadpacket
    # The form with `out=`: the same arguments, and one more that is written and given by name only.
    for overload in packet.overloads():
        other: OpOverload = getattr(packet, overload)
        arguments = other._schema.arguments
        written = [a for a in arguments if a.alias_info is not None and a.alias_info.is_write]
        if len(written) == 1 and written[0].kwarg_only and _runs_on_cpus(other):
            rest = [a for a in arguments if a.name != written[0].name]
            if _kinds(rest) == _kinds(given):
                return Into(str(other.name()), written[0].name)  # type: ignore[no-untyped-call]
    return None


def _kinds(arguments: list[torch.Argument]) -> list[tuple[Any, ...]]:
    return [(a.name, str(a.type), a.kwarg_only) for a in arguments]


def _runs_on_cpus(operator: OpOverload) -> bool:
    """True for an operator with a kernel of its own for CPUs: one that PyTorch derives would
    compute elsewhere, and copy."""
    import torch

    name = operator.name()  # type: ignore[no-untyped-call]
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU"))
