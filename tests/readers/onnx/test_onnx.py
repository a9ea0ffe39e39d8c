"""ONNX models become graphs of one inference."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto

from situate.errors import GraphError, MissingExtra, ReadError
from situate.readers import onnx, read
from situate.readers.recognise import recognise
from tests.readers.models import convolution, graph, loaded, model, node, value, weight


def external(location: str, where: str = "initializer") -> bytes:
    """A model whose weight is stored at `location`."""
    proto = loaded(convolution())
    tensor = proto.graph.initializer[0]
    if where == "attribute":
        tensor = proto.graph.node.add(op_type="Constant", output=["k"]).attribute.add(
            name="value", type=4
        )
        tensor.t.CopyFrom(proto.graph.initializer[0])
        tensor = tensor.t
    if where == "body":
        body = graph([node("Identity", "w", "e")], [], [value("e", [4, 3, 3, 3])], [weight("w", 4)])
        branch = node("If", "x", "z", then_branch=body, else_branch=body)
        proto.graph.node.append(branch)
        tensor = proto.graph.node[-1].attribute[0].g.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return bytes(proto.SerializeToString())


def test_a_model_is_recognised():
    assert recognise(convolution()) == "onnx"


def test_work_and_sizes_come_from_inferred_shapes():
    g = onnx.read(convolution(), "net", {"batch": 2})
    ops = {op.kind: op for op in g.ops}
    assert list(ops) == ["input", "onnx.Conv", "onnx.Relu", "onnx.Reshape", "onnx.Gemm"]
    assert ops["onnx.Conv"].flops == 2 * (2 * 4 * 8 * 8) * (3 * 3 * 3)
    assert ops["onnx.Conv"].traffic == 4 * (2 * 3 * 64 + 4 * 27 + 4 + 2 * 4 * 64)
    assert ops["onnx.Gemm"].flops == 2 * (2 * 10) * 256
    assert {t.name: t.size for t in g.tensors} == {"x": 1536, "c": 2048, "r": 2048, "y": 80}
    assert [t.name for t in g.tensors if t.output] == ["y"]
    assert {op.phase for op in g.ops} == {"forward"}


def test_weights_are_persistent_bytes_of_the_op_that_reads_them():
    persistent = {op.kind: op.persistent for op in onnx.read(convolution(), "net").ops}
    assert persistent["onnx.Conv"] == 4 * (4 * 27 + 4)
    assert persistent["onnx.Gemm"] == 4 * 2560


def test_a_symbolic_dimension_is_one_with_a_warning_or_what_is_asked():
    g = onnx.read(convolution(), "net")
    assert "dimension 'batch' is taken as 1" in g.warnings[0]
    assert g.tensors[0].size == 4 * 3 * 64
    assert onnx.read(convolution(), "net", {"batch": 5}).tensors[0].size == 5 * 4 * 3 * 64


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"bach": 2}, "no dimension 'bach'; did you mean 'batch'"),
        ({"batch": 0}, r"'batch' must be a whole number from 1 to 2\^31, got 0"),
        ({"batch": -1}, r"'batch' must be a whole number from 1 to 2\^31, got -1"),
        ({"batch": 2.5}, r"'batch' must be a whole number from 1 to 2\^31, got 2.5"),
        ({"batch": 2**40}, r"'batch' must be a whole number from 1 to 2\^31, got 1099511627776"),
    ],
)
def test_dims_that_cannot_be_are_named(dims, message):
    with pytest.raises(ReadError, match=message):
        onnx.read(convolution(), "net", dims)


def test_dims_are_for_onnx_only(tmp_path):
    path = tmp_path / "tasks"
    path.write_text("0\n0 0 0\n")
    with pytest.raises(ReadError, match="dims are for ONNX files, this one is stg"):
        read(path, dims={"batch": 2})


def test_a_size_that_overflows_is_an_error_and_not_free():
    with pytest.raises(GraphError, match="must be between 0 and 2\\^53"):
        onnx.read(
            model([node("Relu", "x", "y")], [value("x", [2**62, 2**62])], [value("y", None)]), ""
        )


@pytest.mark.parametrize("where", ["initializer", "attribute", "body"])
@pytest.mark.parametrize(
    "location", ["/etc/passwd", "../weights", "a/../../b", "C:\\weights", "..\\weights"]
)
def test_external_data_outside_the_folder_names_the_tensor(where, location):
    with pytest.raises(ReadError, match=r"tensor 'w': its external data lies outside"):
        onnx.read(external(location, where), "")


def test_external_data_is_never_read(tmp_path: Path):
    path = tmp_path / "net.onnx"
    path.write_bytes(external("weights.bin"))
    assert read(path).ops[1].persistent == 4 * (4 * 27 + 4)


@pytest.mark.parametrize("end", [10, 40, 200, -3])
def test_a_truncated_model_says_so(end):
    with pytest.raises(ReadError, match="is no ONNX model, or a truncated one"):
        onnx.read(convolution()[:end], "")


@pytest.mark.parametrize("text", [b"Gemm", b"flat", b"batch", b"kernel_shape"])
def test_a_name_that_is_not_utf8_is_an_error(text):
    data = convolution().replace(text, b"\xff" * len(text))
    with pytest.raises(ReadError, match=r"is not UTF-8 text"):
        onnx.read(data, "")


def test_without_onnx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"pip install 'situate\[onnx\]'"):
        onnx.read(convolution(), "")
