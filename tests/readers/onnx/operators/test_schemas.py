"""Operators in the versions that an ONNX model imports."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper

from situate.errors import ReadError
from situate.readers import onnx
from tests.readers.models import loaded, model, node, value
from tests.readers.onnx.remedies import read

Y = value("y", None)


def test_the_standard_domain_has_two_names():
    proto = loaded(model([node("Relu", "x", "y", domain="ai.onnx")], [value("x", [4])], [Y]))
    assert read(proto.SerializeToString()).ops[1].flops == 4
    proto.opset_import[0].domain = "ai.onnx"
    assert read(proto.SerializeToString()).ops[1].flops == 4


def test_an_attribute_that_an_op_does_not_have_is_no_matter():
    data = model([node("Relu", "x", "y", consumed_inputs=[0])], [value("x", [4])], [Y])
    assert read(data).ops[1].flops == 4


def test_an_op_that_newer_versions_drop_is_read():
    nodes = [node("Upsample", "x scales", "y")]
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [4], [1, 1, 2, 2])
    data = model(nodes, [value("x", [1, 1, 4, 4])], [Y], [scales])
    assert read(data).ops[1].flops == 64


def test_a_domain_that_is_not_imported_is_an_error_whose_remedy_works():
    proto = loaded(
        model([node("Magic", "x", "y", domain="acme")], [value("x", [4])], [value("y", [4])])
    )
    with pytest.raises(
        ReadError,
        match=r"shape inference failed: op 'y': No opset import for domain acme: (.*) adds",
    ) as error:
        onnx.read(proto.SerializeToString(), "")
    assert "model.opset_import.add(domain='acme', version=1)" in str(error.value)
    proto.opset_import.add(domain="acme", version=1)
    assert read(proto.SerializeToString()).ops[1].kind == "onnx.Magic"


def test_an_op_whose_types_are_wrong_has_the_shape_of_one_whose_types_are_right():
    """Shapes do not depend on them, and runtimes allow more types than the standard."""
    data = model([node("Relu", "x", "y")], [value("x", [4], TensorProto.BOOL)], [value("y", None)])
    assert read(data).tensors[1].size == 4
