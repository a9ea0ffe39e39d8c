"""An ONNX model with complete types for all values, and the constants found on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from situate.errors import ReadError
from situate.files.contents import one_line
from situate.readers.onnx.branches import both, fixed_branch, inlined
from situate.readers.onnx.dims import Notes, Sizes, fix_inputs, sizes
from situate.readers.onnx.loops import carries_sequence, loop, scan, unrolled
from situate.readers.onnx.names import Maker, constant_names, graphs_of, node_name, reads
from situate.readers.onnx.names import node as new_node
from situate.readers.onnx.operators.operator_call import Call
from situate.readers.onnx.operators.schemas import Schemas
from situate.readers.onnx.scope import MOST_NODES, Scope, check_functions, folded, forget_weights
from situate.readers.onnx.sequences import lowered, refusal
from situate.readers.onnx.settle import Settler
from situate.readers.onnx.types import check_rank, collection, tensor_of


@dataclass(frozen=True)
class Inferred:
    """A model without functions, with a shape for every value."""

    graph: Any
    constants: frozenset[str]
    """Values that do not depend on any input's data."""
    warnings: tuple[str, ...]


def infer(model: Any, dims: Mapping[str, int]) -> Inferred:
    """The model with numbers for its open dimensions and inferred types for all values.

    Raises:
        ReadError: a size in `dims` that contradicts the model or is not positive; shapes that
            contradict one another or cannot be inferred; functions that expand to too many nodes.
    """
    if model.functions:
        check_functions(model)
    for graph in graphs_of(model.graph):
        forget_weights(graph)
    model = _inlined(model) if model.functions else model
    dim_sizes = sizes(model.graph, dims)
    warnings = fix_inputs(model.graph, dim_sizes)
    walk = _Walk(model, dim_sizes)
    walk.notes.defaults += warnings.values()
    walk.outermost(model.graph)
    dim_sizes.check_used(dims)
    return Inferred(model.graph, frozenset(walk.constants), (*warnings, *walk.notes.warnings()))


def _inlined(model: Any) -> Any:
    import onnx.inliner

    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception as error:  # onnx raises whatever its C++ parts throw
        raise ReadError(f"its functions cannot be read: {one_line(str(error))[:300]}") from None


# One pass over an ONNX graph and its bodies, producers before consumers.
class _Walk:
    """Types and contents in a model without functions, whose inputs have sizes."""

    def __init__(self, model: Any, dim_sizes: Sizes) -> None:
        self.schemas = Schemas(model)
        self.dim_sizes = dim_sizes
        self.notes = Notes()
        self.constants: set[str] = set()
        """Values of the outermost graph that do not depend on any input's data."""
        graphs = list(graphs_of(model.graph))
        self._names = {name for graph in graphs for name in constant_names(graph)}
        self._names |= {name for graph in graphs for node in graph.node for name in node.output}
        self._used_values = {name for graph in graphs for node in graph.node for name in node.input}
        self._used_values |= {value.name for graph in graphs for value in graph.output}
        self._numbers: dict[str, int] = {}
        self._added = 0
        self._maker = Maker(self.schemas.version(""), self._fresh)
        self._settler = Settler(dim_sizes, self.notes, self._used_values)

    def outermost(self, graph: Any) -> None:
        """Follow the model's own graph."""
        scope = Scope()
        for value in graph.input:
            if which := collection(value.type):
                raise refusal("input", value.name, which)
            check_rank(value.name, value.type.tensor_type.shape.dim)
            scope.bind(value.name, value.type)
        self.follow(graph, scope)

    def follow(self, graph: Any, scope: Scope) -> None:
        """Follow a graph whose inputs are bound in `scope`, and rewrite it.

        A branch with a constant condition replaces its `If`, every value gets its inferred type,
        and nodes of a body that depend only on shapes become constants.

        Raises:
            ReadError: a value without inferable shape, or of another type than a tensor.
        """
        scope.hold(graph)
        scope.stated |= {v.name: v.type for v in (*graph.value_info, *graph.output)}
        nodes = [op for node in graph.node for op in self._visit(node, graph, scope)]
        _spread_outputs(graph, scope)
        # Some of the nodes belong to the graph, which destroys those that it drops: copy them
        # first.
        fresh = type(graph)()
        fresh.node.extend(nodes)
        del graph.node[:], graph.value_info[:]
        graph.node.MergeFrom(fresh.node)
        _state(graph, scope)

    def _visit(self, node: Any, graph: Any, scope: Scope) -> list[Any]:
        """The node, or the nodes in its place."""
        self.schemas.normalise(node)
        for name in node.input:
            if name and name not in scope.types and name not in scope.lists:
                raise ReadError(f"op {node_name(node)!r} reads {name!r}, which no op makes")
        branch = fixed_branch(node, scope) if _is(node, "If") else None
        if branch is not None:
            chosen_nodes = inlined(branch, node.output, graph, scope, self._fresh)
            return self._follow(chosen_nodes, graph, scope)
        if carries_sequence(node, scope):
            visit = partial(self._follow, graph=graph, scope=scope)
            return unrolled(node, graph, scope, self._maker, self.dim_sizes, visit)
        if (instead := lowered(node, scope, self._maker)) is not None:
            return self._follow(instead, graph, scope)
        return self._bind(node, scope)

    def _follow(self, instead: list[Any], graph: Any, scope: Scope) -> list[Any]:
        """The remaining nodes of those in place of another one."""
        self._added += len(instead)
        self._used_values.update(name for inner in instead for name in reads(inner))
        if self._added > MOST_NODES:
            raise ReadError(f"its sequences stand for more than {MOST_NODES:,} nodes")
        return [op for inner in instead for op in self._visit(inner, graph, scope)]

    def _bind(self, node: Any, scope: Scope) -> list[Any]:
        """Infer the types of a node's outputs and, if possible, their contents."""
        if name := next((name for name in node.input if name in scope.lists), None):
            raise refusal(f"op {node_name(node)!r}", name, "sequence")
        types, reason = self._inferred(node, scope)
        contents = self._contents(node, scope, types)
        types |= {content.name: tensor_of(content) for content in contents}
        self._settler.settle(node, scope, types, reason)
        for content in contents:
            scope.bind(content.name, tensor_of(content), content)
        if not scope.is_body:
            self.constants |= {content.name for content in contents}
            return [node]
        return [node] if node.op_type == "Constant" else list(map(_constant, contents)) or [node]

    def _inferred(self, node: Any, scope: Scope) -> tuple[dict[str, Any], str]:
        """Inferred types of the node's outputs, and the objection to them."""
        if _is(node, "If"):
            return both(node, scope, self.follow, self.notes), ""
        if _is(node, "Loop"):
            return loop(node, scope, self.follow, self.dim_sizes, self.notes), ""
        if _is(node, "Scan"):
            return scan(node, scope, self.follow, self.schemas.version("")), ""
        kinds = {name: scope.types[name] for name in node.input if name}
        contents = {name: scope.content(name) for name in kinds if scope.content(name) is not None}
        types, reason = self.schemas.infer(node, kinds, contents)
        if types or reason:
            return types, reason
        call = Call(node, [kinds.get(n) for n in node.input], [contents.get(n) for n in node.input])
        return dict(zip(node.output, self.schemas.contrib(call), strict=False)), ""

    def _contents(self, node: Any, scope: Scope, types: Mapping[str, Any]) -> list[Any]:
        kinds = {name: scope.types[name] for name in node.input if name}
        contents = {name: scope.content(name) for name in kinds}
        return folded(node, self.schemas.opsets, kinds, contents, types)

    def _fresh(self, name: str) -> str:
        """The name, or one like it that no value has."""
        candidate, number = name, self._numbers.get(name, 2)
        while candidate in self._names:
            candidate, number = f"{name}#{number}", number + 1
        self._numbers[name] = number
        self._names.add(candidate)
        if candidate != name:
            self.dim_sizes.renamed[candidate] = self.dim_sizes.origin(name)
        return candidate


def _is(node: Any, kind: str) -> bool:
    return bool(node.op_type == kind and not node.domain)


def _constant(content: Any) -> Any:
    return new_node("Constant", [], [content.name], value=content)


def _spread_outputs(graph: Any, scope: Scope) -> None:
    """A sequence that the graph hands out is the tensors in it."""
    names = [value.name for value in graph.output]
    if scope.is_body and (name := next((n for n in names if n in scope.lists), None)):
        raise refusal("the body of an op", name, "sequence")
    outputs = [inner for name in names for inner in scope.lists.get(name, (name,))]
    del graph.output[:]
    for name in outputs:
        graph.output.add(name=name)


def _state(graph: Any, scope: Scope) -> None:
    """Write the inferred types into the graph."""
    own = dict(scope.types.maps[0])
    for value in (*graph.input, *graph.output):
        if (kind := own.pop(value.name, None) or scope.types.get(value.name)) is not None:
            value.type.CopyFrom(kind)
    for name, kind in own.items():
        graph.value_info.add(name=name).type.CopyFrom(kind)
