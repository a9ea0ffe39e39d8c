"""Output types of classic machine learning operators (`ai.onnx.ml`) that onnx does not infer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from situate.readers.onnx.operators.operator_call import Call
from situate.readers.onnx.types import tensor

DOMAIN = "ai.onnx.ml"
"""Domain of the operators of classic machine learning."""

WIDTHS: dict[str, Callable[[Call], int]] = {
    "FeatureVectorizer": lambda call: sum(call.numbers("inputdimensions")),
    "LinearRegressor": lambda call: call.number("targets", 1),
    "SVMRegressor": lambda call: 1,
    "TreeEnsembleRegressor": lambda call: call.required("n_targets"),
}
"""Outputs per row, by operator."""


def classic_types(call: Call) -> list[Any]:
    """Types of the outputs in order; an empty list if unknown."""
    import onnx

    kinds, op = onnx.TensorProto, call.node.op_type
    if op in ("Imputer", "Normalizer", "Scaler"):
        same = call.element(0) if op == "Imputer" else kinds.FLOAT
        return [tensor(same, call.shape(0))]
    if op in WIDTHS:
        return [tensor(kinds.FLOAT, (_rows(call), WIDTHS[op](call)))]
    if op == "TreeEnsembleClassifier":
        words = _labels(call, "classlabels_strings")
        numbers = _labels(call, "classlabels_int64s")
        label = kinds.STRING if words else kinds.INT64
        scores = (_rows(call), words or numbers)
        return [tensor(label, scores[:1]), tensor(kinds.FLOAT, scores)]
    return []


def _rows(call: Call) -> int:
    """A vector is one row."""
    shape = call.shape(0)
    return shape[0] if len(shape) > 1 else 1


def _labels(call: Call, attribute: str) -> int:
    attributes = (a for a in call.node.attribute if a.name == attribute)
    return sum(len(a.ints) + len(a.strings) for a in attributes)
