"""Types of the outputs of operators that onnx does not know, as ONNX Runtime makes them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper

from situate.errors import ReadError
from situate.readers import onnx
from situate.readers.onnx.types import Info, Shapes
from situate.readers.onnx.walk import infer
from tests.readers.models import loaded, model, node, scalar, value

KINDS = {
    "u": TensorProto.UINT8,
    "s": TensorProto.INT8,
    "f": TensorProto.FLOAT,
    "h": TensorProto.FLOAT16,
    "w": TensorProto.UINT16,
    "i": TensorProto.INT32,
    "l": TensorProto.INT64,
    "b": TensorProto.BOOL,
}
OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
Q = "f u"
"""A scale and a zero point."""


def model_of(op: str, inputs: str, outputs: int = 1, **attributes: Any) -> bytes:
    """A model of one op, whose inputs are such as `f2,3`: a type and a shape; `-` is left out."""
    words = inputs.split()
    names = [word if word == "-" else f"i{place}" for place, word in enumerate(words)]
    arguments = [
        value(name, [int(size) for size in word[1:].split(",") if size], KINDS[word[0]])
        for name, word in zip(names, words, strict=True)
        if word != "-"
    ]
    domain = attributes.pop("domain", "com.microsoft")
    results = [f"o{place}" for place in range(outputs)]
    op = node(op, " ".join(names), " ".join(results), domain=domain, **attributes)
    return model([op], arguments, [value(name, None) for name in results], opset_imports=OPSETS)


def outputs_of(op: str, inputs: str, outputs: int = 1, **attributes: Any) -> list[tuple[Any, str]]:
    """Shapes and types of an op's outputs."""
    shapes = Shapes.of(infer(loaded(model_of(op, inputs, outputs, **attributes)), {}).graph)
    infos = [shapes.get(f"o{place}") or Info((), "") for place in range(outputs)]
    return [(info.shape, info.dtype) for info in infos]


# Output shapes of the attention operators of ONNX Runtime.
TWO = {"num_heads": 2}
OUT = (2, 5, 8)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "shapes"),
    [
        ("Attention", "f2,5,8 f8,24 f24", TWO, [OUT]),
        ("Attention", "f2,5,6 f6,28 f28", {**TWO, "qkv_hidden_sizes": [8, 8, 12]}, [(2, 5, 12)]),
        ("Attention", "f2,5,8 f8,24 f24 - f2,2,2,3,4", TWO, [OUT, (2, 2, 2, 8, 4)]),
        ("QAttention", "u2,5,8 s8,24 f24 f f - u s", TWO, [OUT]),
        ("QAttention", "u2,5,8 s8,24 f24 f f - u s f2,2,2,3,4", TWO, [OUT, (2, 2, 2, 8, 4)]),
        ("MultiHeadAttention", "f2,5,8 f2,7,8 f2,7,12", TWO, [(2, 5, 12)]),
        ("MultiHeadAttention", "f2,5,8 f2,2,7,4 f2,2,7,4", TWO, [OUT]),
        ("MultiHeadAttention", "f2,5,8 f2,7,2,2,4", TWO, [OUT]),
        ("MultiHeadAttention", "f2,5,2,3,4", TWO, [OUT]),
        (
            "MultiHeadAttention",
            "f2,5,8 f2,5,8 f2,5,8 - - - f2,2,3,4 f2,2,3,4",
            TWO,
            [OUT, (2, 2, 8, 4), (2, 2, 8, 4)],
        ),
        (
            "DecoderMaskedMultiHeadAttention",
            "f2,1,8 f2,1,8 f2,1,8 - - f2,2,9,4 f2,2,9,4 i1",
            {**TWO, "past_present_share_buffer": 1},
            [(2, 1, 8), (2, 2, 9, 4), (2, 2, 9, 4)],
        ),
        (
            "GroupQueryAttention",
            "f2,1,32 f2,1,16 f2,1,16 f2,2,9,8 f2,2,9,8 i2 i1",
            {"num_heads": 4, "kv_num_heads": 2},
            [(2, 1, 32), (2, 2, 10, 8), (2, 2, 10, 8)],
        ),
        (
            "GroupQueryAttention",
            "f2,5,64 - - - - i2 i1",
            {"num_heads": 4, "kv_num_heads": 2},
            [(2, 5, 32), (2, 2, 5, 8), (2, 2, 5, 8)],
        ),
    ],
)
def test_results_and_the_keys_and_values_that_are_kept(op, inputs, attributes, shapes):
    assert [shape for shape, _ in outputs_of(op, inputs, len(shapes), **attributes)] == shapes


def test_an_attention_of_quantised_numbers_makes_real_ones():
    assert outputs_of("QAttention", "u2,5,8 s8,24 f24 h f - u s", **TWO) == [(OUT, "float16")]


# Output types of classic machine learning operators.
CLASSIC_OPSETS = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]


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
    data = model([op], [value("x", ["n", 4])], outputs, opset_imports=CLASSIC_OPSETS)
    shapes = Shapes.of(infer(loaded(data), {"n": 6}).graph)
    assert [(shapes.get(n).shape, shapes.get(n).dtype) for n in names] == expected


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "expected"),
    [
        ("QLinearSigmoid", f"u2,3 {Q} {Q}", {}, ((2, 3), "uint8")),
        ("QLinearLeakyRelu", f"s2,3 {Q} {Q}", {}, ((2, 3), "int8")),
        ("QLinearSoftmax", f"u2,3 {Q} {Q}", {"axis": -1, "opset": 13}, ((2, 3), "uint8")),
        ("QGemm", f"u5,4 {Q} u4,6 {Q} i6 {Q}", {}, ((5, 6), "uint8")),
        ("QGemm", f"u4,5 {Q} u6,4 {Q}", {"transA": 1, "transB": 1}, ((5, 6), "float32")),
        ("QuantizeLinear", "f2,3 f w", {}, ((2, 3), "uint16")),
        ("QuantizeLinear", "f2,3 f", {}, ((2, 3), "uint8")),
        ("DequantizeLinear", "w2,3 h w", {}, ((2, 3), "float16")),
        ("Gelu", "f2,3", {}, ((2, 3), "float32")),
        ("FastGelu", "h2,3 h3", {}, ((2, 3), "float16")),
        ("QuickGelu", "f2,3", {}, ((2, 3), "float32")),
        ("BiasGelu", "f2,3 f3", {}, ((2, 3), "float32")),
        ("BiasSplitGelu", "f1,8,8 f8", {}, ((1, 8, 4), "float32")),
        ("GroupNorm", "h1,8,8,4 f4 f4", {"groups": 2}, ((1, 8, 8, 4), "float16")),
        ("RotaryEmbedding", "f2,5,8 l2,5 f9,2 f9,2", {}, ((2, 5, 8), "float32")),
        ("MatMulNBits", "h2,5,32 u12,2,8 h24", {"N": 12, "K": 32}, ((2, 5, 12), "float16")),
        ("MatMulBnb4", "f2,5,32 u192 f6", {"N": 12, "K": 32}, ((2, 5, 12), "float32")),
        ("GatherBlockQuantized", "u10,16 l2,3 f10,2", {"bits": 4}, ((2, 3, 32), "float32")),
        ("GatherBlockQuantized", "u10,16 l2,3 f10,2", {"bits": 8}, ((2, 3, 16), "float32")),
        ("MulInteger", "u2,3 u u3 u", {}, ((2, 3), "int32")),
        ("MatMulInteger16", "w2,3 w3,4", {}, ((2, 4), "int32")),
        ("ReduceSumInteger", "u2,3", {"axes": [1], "keepdims": 0}, ((2,), "int32")),
        ("CDist", "f3,4 f5,4", {}, ((3, 5), "float32")),
        ("MoE", "f5,8 f5,3 f3,16,8 f3,16 f3,8,16", {"k": 2}, ((5, 8), "float32")),
    ],
)
def test_the_first_output(op, inputs, attributes, expected):
    assert outputs_of(op, inputs, **attributes) == [expected]


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_a_normalised_sum_comes_with_means_deviations_and_the_sum(op):
    shapes = [shape for shape, _ in outputs_of(op, "f2,5,8 f2,5,8 f8", 4)]
    assert shapes == [(2, 5, 8), (2, 5, 1), (2, 5, 1), (2, 5, 8)]


def test_an_operator_of_onnx_runtime_in_the_standard_domain():
    result = outputs_of("SimplifiedLayerNormalization", "f2,5,8 f8", 2, domain="")
    assert [shape for shape, _ in result] == [(2, 5, 8), (2, 5, 1)]


@pytest.mark.parametrize("version", [18, 21])
def test_a_normalisation_of_groups_of_the_standard(version):
    op = node("GroupNormalization", "x s b", "y", num_groups=2)
    inputs = [value("x", [2, 4, 3, 3]), value("s", [4]), value("b", [4])]
    opsets = [helper.make_opsetid("", version)]
    ops = onnx.read(model([op], inputs, [value("y", None)], opset_imports=opsets), "").ops
    assert ops[-1].flops == 2 * 4 * 9


def test_embedded_tokens_come_with_the_length_of_their_mask():
    result = outputs_of("EmbedLayerNormalization", "i2,5 i2,5 f10,8 f6,8 f2,8 f8 f8 i2,5", 3)
    assert result == [((2, 5, 8), "float32"), ((2,), "int32"), ((2, 5, 8), "float32")]


@pytest.mark.parametrize(("axis", "shape"), [(1, (3, 1, 4)), (-1, (3, 4, 1))])
def test_an_axis_that_a_constant_places(axis, shape):
    op = node("ExpandDims", "x axis", "y", domain="com.microsoft")
    data = model([op], [value("x", [3, 4])], [value("y", None)], [scalar("axis", axis)])
    assert Shapes.of(infer(loaded(data), {}).graph).get("y").shape == shape
    with pytest.raises(ReadError, match=r"com.microsoft.ExpandDims has no shape inference here"):
        outputs_of("ExpandDims", "f3,4 i")


@pytest.mark.parametrize("op", ["Attention", "MultiHeadAttention", "MatMulNBits", "QGemm"])
@pytest.mark.parametrize("inputs", ["f", "f2", "-"])
def test_one_that_lacks_inputs_or_dimensions_is_named(op, inputs):
    with pytest.raises(ReadError, match=r"shape inference failed: op 'o0'|cannot be inferred"):
        outputs_of(op, inputs)


def test_the_same_name_in_another_domain_is_another_operator():
    opsets = [*OPSETS, helper.make_opsetid("acme", 1)]
    op = node("FastGelu", "x", "y", domain="acme")
    with pytest.raises(ReadError, match=r"acme.FastGelu has no shape inference here"):
        onnx.read(model([op], [value("x", [2])], [value("y", None)], opset_imports=opsets), "")
