"""Every framework's operator types fall into the class whose rate they run at."""

from __future__ import annotations

import pytest

from situate.data.op_classes import DTYPES, EFFICIENCY, NAMES, op_class


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("aten.mm", "matmul"),
        ("aten.mm.default", "matmul"),
        ("aten.addmm.default", "matmul"),
        ("aten.bmm.default", "matmul"),
        ("aten.baddbmm", "matmul"),
        ("aten.linear", "matmul"),
        ("onnx.Gemm", "matmul"),
        ("onnx.LSTM", "matmul"),
        ("MatMul", "matmul"),
        ("BatchMatMulV2", "matmul"),
        ("aten.mkldnn_linear", "matmul"),
        ("aten.linear_backward", "matmul"),
        ("aten.bilinear", "matmul"),
        ("aten._trilinear", "matmul"),
        ("onnx.QLinearMatMul", "matmul"),
        ("aten.convolution.default", "convolution"),
        ("aten.convolution_backward.default", "convolution"),
        ("aten._convolution", "convolution"),
        ("onnx.ConvTranspose", "convolution"),
        ("Conv2DBackpropFilter", "convolution"),
        ("aten._to_copy.default", "elementwise"),
        ("prims.convert_element_type", "elementwise"),
        ("aten._scaled_dot_product_flash_attention_for_cpu", "attention"),
        ("aten.scaled_dot_product_attention", "attention"),
        ("aten.embedding.default", "embedding"),
        ("aten.embedding_dense_backward", "embedding"),
        ("aten.index.Tensor", "embedding"),
        ("onnx.Gather", "embedding"),
        ("GatherV2", "embedding"),
        ("aten.sum.dim_IntList", "reduction"),
        ("aten.mean.dim", "reduction"),
        ("aten.native_batch_norm_backward", "reduction"),
        ("aten._native_batch_norm_legit_functional", "reduction"),
        ("aten.native_layer_norm", "reduction"),
        ("aten._softmax", "reduction"),
        ("aten.max_pool2d_with_indices", "reduction"),
        ("aten.avg_pool2d_backward", "reduction"),
        ("aten.nll_loss_forward", "reduction"),
        ("onnx.ReduceMean", "reduction"),
        ("FusedBatchNormV3", "reduction"),
        ("BiasAddGrad", "reduction"),
        ("MaxPool", "reduction"),
        ("onnx.QLinearGlobalAveragePool", "reduction"),
        ("update.sgd", "update"),
        ("update.adam", "update"),
        ("ResourceApplyAdam", "update"),
        ("ApplyGradientDescent", "update"),
        ("all_reduce", "collective"),
        ("_c10d_functional.all_reduce", "collective"),
        ("NcclAllReduce", "collective"),
        ("aten.add.Tensor", "elementwise"),
        ("aten.relu", "elementwise"),
        ("aten.maximum", "elementwise"),
        ("aten.threshold_backward", "elementwise"),
        ("aten.cat", "elementwise"),
        ("aten.transpose", "elementwise"),
        ("aten.native_dropout", "elementwise"),
        ("Relu", "elementwise"),
        ("onnx.QuantizeLinear", "elementwise"),
        ("onnx.DequantizeLinear", "elementwise"),
        ("onnx.DynamicQuantizeLinear", "elementwise"),
        ("onnx.QLinearAdd", "elementwise"),
        ("aten.upsample_linear1d", "elementwise"),
        ("aten.upsample_bilinear2d", "elementwise"),
        ("aten._upsample_bilinear2d_aa_backward", "elementwise"),
        ("ResizeBilinear", "elementwise"),
        ("no such thing", "elementwise"),
        ("", "elementwise"),
    ],
)
def test_the_class_of(kind, expected):
    assert op_class(kind) == expected


def test_every_class_reaches_a_fraction_of_the_peak():
    assert all(0 < fraction <= 1 for fraction in EFFICIENCY.values())


# Names of element types.
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
    from situate.readers.onnx.types import Info, tensor_info

    numbers = onnx.TensorProto.DataType.values()
    infos = [tensor_info(onnx.TensorProto(data_type=number)) for number in numbers]
    assert {info.dtype for info in infos if isinstance(info, Info)} - NAMES == set()


def test_c_plus_plus_knows_no_other():
    from situate.readers.execution_trace.nodes import DTYPES as OF_TRACES

    assert set(OF_TRACES.values()) - NAMES == set()
