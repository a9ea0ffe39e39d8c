"""The branches of `If`: the one whose condition is constant, or both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from situate.errors import ReadError
from situate.readers.onnx.dims import Notes
from situate.readers.onnx.names import bodies_of, constant_names, node_name
from situate.readers.onnx.names import node as new_node
from situate.readers.onnx.scope import Scope
from situate.readers.onnx.types import shape_of, sizes_of

Fresh = Callable[[str], str]
"""Makes a name that no value has."""

Follow = Callable[[Any, Scope], None]
"""Finds the types of all values in a body."""


def body(node: Any, name: str, outputs: int) -> Any:
    """The graph in an attribute of the node.

    Raises:
        ReadError: it has none of that name, or one of fewer outputs.
    """
    graph = next((a.g for a in node.attribute if a.name == name and a.HasField("g")), None)
    if graph is None:
        raise ReadError(f"op {node_name(node)!r}: has no {name}, which {node.op_type} needs")
    if len(graph.output) < outputs:
        raise ReadError(
            f"op {node_name(node)!r}: its {name} makes {len(graph.output)} values of {outputs}"
        )
    return graph


def fixed_branch(node: Any, scope: Scope) -> Any:
    """The branch of a constant condition; None if the condition depends on data."""
    condition = scope.number(node.input[0]) if node.input else None
    if condition is None:
        return None
    return body(node, "then_branch" if condition else "else_branch", len(node.output))


def inlined(
    branch: Any,
    outputs: Sequence[str],
    graph: Any,
    scope: Scope,
    fresh: Fresh,
    renames: Mapping[str, str] | None = None,
) -> list[Any]:
    """The nodes of a body in place of its op, with the op's outputs.

    Constants of the body move to `graph`. Names that exist in `scope` are replaced.

    Args:
        outputs: names for the body's outputs; outputs without a name are not needed.
        renames: outer names by the body's input names.
    """
    names = dict(renames or {}) | moved(branch, graph, scope, fresh)
    produced = [name for inner in branch.node for name in inner.output if name]
    names |= {name: fresh(name) for name in produced if name in scope.types or name in scope.lists}
    passed = []
    for inner, outer in zip(branch.output, outputs, strict=False):
        if outer and inner.name in produced and names.get(inner.name) not in outputs:
            names[inner.name] = outer
        elif outer:
            # The body hands out a value from outside, or one value twice.
            passed.append((inner.name, outer))
    for value in (*branch.value_info, *branch.output):
        scope.stated.setdefault(names.get(value.name, value.name), value.type)
    _rename(branch, names)
    return [*branch.node, *(new_node("Identity", [names.get(a, a)], [b]) for a, b in passed)]


def moved(branch: Any, graph: Any, scope: Scope, fresh: Fresh) -> dict[str, str]:
    """Move the constants of a body to the graph around it; return the new names of renamed ones."""
    constants = [*branch.initializer, *(sparse.values for sparse in branch.sparse_initializer)]
    typed_names = [c.name for c in constants if c.name in scope.types or c.name in scope.lists]
    names = {name: fresh(name) for name in typed_names}
    for constant in constants:
        constant.name = names.get(constant.name, constant.name)
    scope.hold(branch)
    graph.initializer.extend(branch.initializer)
    graph.sparse_initializer.extend(branch.sparse_initializer)
    return names


def _rename(graph: Any, names: Mapping[str, str]) -> None:
    """Change names in all nodes; a body's own values keep theirs."""
    for node in graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(name, name) for name in values]
        for inner in bodies_of(node):
            # Names of an inner body hide outer names.
            own = constant_names(inner) | {name for n in inner.node for name in n.output}
            outside = {old: new for old, new in names.items() if old not in own}
            _rename(inner, outside)
            for value in inner.output:
                value.name = outside.get(value.name, value.name)


def both(node: Any, scope: Scope, follow: Follow, notes: Notes) -> dict[str, Any]:
    """Types of an `If`'s outputs: the larger one where its branches differ."""
    branch_outputs: list[list[Any]] = []
    for name in ("then_branch", "else_branch"):
        branch, inner = body(node, name, len(node.output)), scope.inner()
        follow(branch, inner)
        branch_outputs.append([inner.types[value.name] for value in branch.output])
    return dict(_larger(node, branch_outputs, notes))


def _larger(node: Any, branch_outputs: list[list[Any]], notes: Notes) -> Iterator[tuple[str, Any]]:
    for name, one, other in zip(node.output, *branch_outputs, strict=False):
        if name and shape_of(one) != shape_of(other):
            notes.unequal.append(name)
        yield name, max(one, other, key=_elements)


def _elements(kind: Any) -> int:
    return math.prod(sizes_of(kind))
