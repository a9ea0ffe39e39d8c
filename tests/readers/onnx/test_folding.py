"""Small values that follow from shapes and constants are computed."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto

from situate.readers.onnx.infer import infer
from tests.readers.models import loaded, model, node, scalar, value, weight, whole


def test_a_large_constant_is_not_computed():
    nodes = [node("ConstantOfShape", "n", "big"), node("Add", "x big", "y")]
    made = loaded(model(nodes, [value("x", [1])], [value("y", None)], [whole("n", 10**12)]))
    assert "big" not in infer(made, {}).constants


@pytest.mark.parametrize(
    "made",
    [
        node("ConstantOfShape", "n", "big"),
        node("Expand", "zero n", "big"),
        node("Range", "from to one", "big"),
        node("Max", "tall wide", "big"),
    ],
)
def test_a_large_value_that_is_stated_to_be_small_is_not_computed(made):
    constants = [whole("n", 10**7), whole("zero", 0), scalar("from", 0), scalar("to", 10**7)]
    constants += [scalar("one", 1), weight("tall", 1024, 1), weight("wide", 1, 1024)]
    nodes = [made, node("Add", "x big", "y")]
    read = loaded(model(nodes, [value("x", [1])], [value("y", None)], constants))
    read.graph.value_info.append(value("big", [1]))
    assert "big" not in infer(read, {}).constants


@pytest.mark.parametrize("kind", ["Constant", "ConstantOfShape"])
def test_a_constant_in_another_file_stays_unknown(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_bytes(bytes(4))
    one = TensorProto(name="c", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    one.external_data.add(key="location", value="data")
    read = "" if kind == "Constant" else "n"
    nodes = [node(kind, read, "c", value=one), node("Add", "x c", "y")]
    made = model(nodes, [value("x", [1])], [value("y", None)], [whole("n", 1)])
    assert "c" not in infer(loaded(made), {}).constants
