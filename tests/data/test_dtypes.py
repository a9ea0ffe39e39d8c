"""Names of element types."""

from __future__ import annotations

import pytest

from situate.data.dtypes import DTYPES, NAMES


def test_what_a_device_may_state_is_a_name():
    assert DTYPES < NAMES


def test_no_name_is_one():
    assert "" in NAMES


def test_pytorch_knows_no_other():
    torch = pytest.importorskip("torch")
    dtypes = (value for value in vars(torch).values() if isinstance(value, torch.dtype))
    assert {str(dtype).removeprefix("torch.") for dtype in dtypes} - NAMES == set()


def test_onnx_knows_no_other():
    onnx = pytest.importorskip("onnx")
    from situate.readers.onnx.shapes import Info, tensor_info

    numbers = onnx.TensorProto.DataType.values()
    infos = [tensor_info(onnx.TensorProto(data_type=number)) for number in numbers]
    assert {info.dtype for info in infos if isinstance(info, Info)} - NAMES == set()


def test_c_plus_plus_knows_no_other():
    from situate.readers.execution_trace.nodes import DTYPES as OF_TRACES

    assert set(OF_TRACES.values()) - NAMES == set()
