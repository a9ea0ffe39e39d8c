"""Operators that PyTorch does not have itself, and what capture does not know of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from situate.torch_capture.formulas import formula

if TYPE_CHECKING:
    from torch import fx

OWN = frozenset({"aten", "prims", "situate"})
"""Namespaces of operators, PyTorch's and `slices.norm_operators`', of which those without a formula
multiply nothing."""


UNCOUNTED = (
    "counted as memory traffic only: {}; register FLOPs by "
    "torch.utils.flop_counter.register_flop_formula, or measure (situate profile)"
)
OVERWRITING = (
    "counted as memory traffic only, and run by no plan, because inputs are written over: {}; "
    "return new tensors instead"
)


def warnings(nodes: Iterable[fx.Node]) -> tuple[str, ...]:
    """Warnings about the operators of nodes, each named once: those whose FLOPs are not known, and
    those that write over their inputs."""
    nodes = list(nodes)
    found = {UNCOUNTED: map(_uncounted, nodes), OVERWRITING: map(overwrites, nodes)}
    listed = {line: _listed(names) for line, names in found.items()}
    return tuple(line.format(names) for line, names in listed.items() if names)


def overwrites(node: fx.Node) -> str:
    """The operator that writes over its inputs, such as `mine::add_`, behind a node in which
    PyTorch has it write over copies; empty for others."""
    from torch import _ops

    operator = node.args[0] if isinstance(node.target, _ops.HigherOrderOperator) else None
    return _name(operator) if isinstance(operator, _ops.OpOverload) else ""


def _uncounted(node: fx.Node) -> str:
    from torch import _ops

    target = node.target
    if not isinstance(target, _ops.OpOverload) or target.namespace in OWN:
        return ""
    return "" if formula(target.overloadpacket) else _name(target)


def _name(operator: Any) -> str:
    return str(operator.overloadpacket._qualified_op_name)


def _listed(names: Iterable[str]) -> str:
    """The first of them in words, each once; what is empty is none."""
    found = list(filter(None, dict.fromkeys(names)))
    return ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
