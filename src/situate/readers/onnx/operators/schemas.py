"""Shape inference of operators by onnx itself, in the versions that a model imports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from situate.errors import ReadError
from situate.files.contents import one_line
from situate.readers.onnx.names import node_name
from situate.readers.onnx.operators.contrib import DOMAINS, contrib_types
from situate.readers.onnx.operators.operator_call import Call

STANDARD = "ai.onnx"
"""The standard domain's other name."""


class Schemas:
    """Operators in the versions that a model imports."""

    def __init__(self, model: Any) -> None:
        self._imports = list(model.opset_import)
        imported = {opset.domain: int(opset.version) for opset in self._imports}
        # A model may import the standard domain by either of its names.
        imported.setdefault("", imported.pop(STANDARD, 1))
        self.opsets = imported

    def version(self, domain: str) -> int:
        """The version of a domain that the model imports."""
        return self.opsets[domain]

    def normalise(self, node: Any) -> None:
        """Give the standard domain its one name.

        Raises:
            ReadError: the node is of a domain that the model does not import.
        """
        if node.domain == STANDARD:
            node.domain = ""
        if node.domain not in self.opsets and node.domain not in DOMAINS:
            raise ReadError(
                f"shape inference failed: op {node_name(node)!r}: No opset import for domain "
                f"{node.domain}: model.opset_import.add(domain={node.domain!r}, version=1) adds it"
            )

    def infer(
        self, node: Any, kinds: Mapping[str, Any], contents: Mapping[str, Any]
    ) -> tuple[dict[str, Any], str]:
        """Types of the node's outputs, from the types and known contents of its inputs, and onnx's
        objection to their shapes. Both are empty for operators unknown to onnx.

        Raises:
            ReadError: the node breaks the operator's rules.
        """
        import onnx.checker
        import onnx.shape_inference

        if (schema := self._schema(node)) is None:
            return {}, ""
        plain = _plain(node, schema)
        try:
            types: dict[str, Any] = onnx.shape_inference.infer_node_outputs(
                schema, plain, dict(kinds), dict(contents), opset_imports=self._imports
            )
        except onnx.shape_inference.InferenceError as error:
            return {}, one_line(str(error))[:300]
        except onnx.checker.ValidationError:  # of types too, which shapes do not depend on
            return self._inferred_alone(plain, kinds, contents), ""
        except Exception as error:  # onnx raises whatever its C++ parts throw
            raise _failed(node, str(error)) from None
        return types, ""

    def _inferred_alone(
        self, node: Any, kinds: Mapping[str, Any], contents: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Inferred types from a model of this node alone, whose inputs onnx does not check."""
        import onnx.shape_inference

        inputs = [onnx.helper.make_value_info(n, k) for n, k in kinds.items() if n not in contents]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "", inputs, outputs)
        for name, content in contents.items():
            graph.initializer.add().CopyFrom(content)
            graph.initializer[-1].name = name
        model = onnx.helper.make_model(graph, opset_imports=self._imports)
        try:
            inferred = onnx.shape_inference.infer_shapes(model)
        except Exception as error:  # as above
            raise _failed(node, str(error)) from None
        return {v.name: v.type for v in inferred.graph.output if v.type.WhichOneof("value")}

    def contrib(self, call: Call) -> list[Any]:
        """Output types of an operator unknown to onnx."""
        try:
            return contrib_types(call)
        except ReadError:
            raise
        except Exception as error:  # it lacks inputs or dimensions
            raise _failed(
                call.node, f"its inputs or attributes do not fit {call.node.op_type}: {error}"
            ) from None

    def _schema(self, node: Any) -> Any:
        """The operator's schema; None if onnx has no inference for it."""
        import onnx

        version = self.opsets.get(node.domain, 1)
        while version > 0 and onnx.defs.has(node.op_type, version, node.domain):
            schema = onnx.defs.get_schema(node.op_type, version, node.domain)
            if not schema.deprecated:
                return schema if schema.has_type_and_shape_inference_function else None
            # An operator that is deprecated now may have a valid older version.
            version = schema.since_version - 1
        return None


def _failed(node: Any, why: str) -> ReadError:
    return ReadError(f"shape inference failed: op {node_name(node)!r}: {one_line(why)[:300]}")


def _plain(node: Any, schema: Any) -> Any:
    """The node without attributes that its operator does not have."""
    if all(attribute.name in schema.attributes for attribute in node.attribute):
        return node
    plain = type(node)()
    plain.CopyFrom(node)
    del plain.attribute[:]
    plain.attribute.extend(a for a in node.attribute if a.name in schema.attributes)
    return plain
