"""Types of what operators of classic machine learning make."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import helper

from situate.readers.onnx.infer import infer
from situate.readers.onnx.shapes import Shapes
from tests.readers.models import loaded, model, node, value

OPSETS = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]


@pytest.mark.parametrize(
    ("kind", "attributes", "expected"),
    [
        ("Scaler", {"offset": [0.0], "scale": [1.0]}, [((6, 4), "float32")]),
        ("Normalizer", {"norm": "L2"}, [((6, 4), "float32")]),
        ("Imputer", {"imputed_value_floats": [0.0]}, [((6, 4), "float32")]),
        ("LinearRegressor", {"coefficients": [1.0] * 8, "targets": 2}, [((6, 2), "float32")]),
        ("SVMRegressor", {}, [((6, 1), "float32")]),
        ("TreeEnsembleRegressor", {"n_targets": 3}, [((6, 3), "float32")]),
        ("FeatureVectorizer", {"inputdimensions": [4]}, [((6, 4), "float32")]),
        (
            "TreeEnsembleClassifier",
            {"classlabels_int64s": [0, 1, 2]},
            [((6,), "int64"), ((6, 3), "float32")],
        ),
        (
            "TreeEnsembleClassifier",
            {"classlabels_strings": ["a", "b"]},
            [((6,), "string"), ((6, 2), "float32")],
        ),
    ],
)
def test_rows_stay_and_what_is_made_of_them_is_known(kind, attributes, expected):
    names = [f"y{place}" for place in range(len(expected))]
    op = node(kind, "x", " ".join(names), domain="ai.onnx.ml", **attributes)
    outputs = [value(name, None) for name in names]
    data = model([op], [value("x", ["n", 4])], outputs, opset_imports=OPSETS)
    found = Shapes.of(infer(loaded(data), {"n": 6}).graph)
    assert [(found.get(n).shape, found.get(n).dtype) for n in names] == expected
