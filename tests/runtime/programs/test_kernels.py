"""Kernels are found by qualified names, and their results keep the captured strides."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.programs.kernels import VIEW_KERNELS, is_dense, kernel, kernel_name, laid_out  # noqa: E402
from situate.runtime.programs.replacements import attention  # noqa: E402

CPU, GPU = torch.device("cpu"), torch.device("cuda:0")
FOR_CPUS = "aten::_scaled_dot_product_flash_attention_for_cpu"


# Names and kernels.
@pytest.mark.parametrize("device", [CPU, GPU])
def test_a_kernel_is_pytorchs_operator_of_that_name(device: torch.device) -> None:
    assert kernel("aten::add.Tensor", device) is torch.ops.aten.add.Tensor._op
    assert kernel("aten::relu", device) is torch.ops.aten.relu.default._op


def test_a_gpu_has_another_where_pytorch_has_one_for_cpus_only() -> None:
    assert kernel(FOR_CPUS, GPU) is attention
    assert kernel(FOR_CPUS, CPU) is not attention


def test_the_name_of_a_node_finds_what_it_calls() -> None:
    graph = torch.fx.Graph()
    node = graph.call_function(torch.ops.aten.relu.default, (graph.placeholder("x"),))
    assert kernel_name(node) == "aten::relu"


@pytest.mark.parametrize("name", sorted(VIEW_KERNELS))
def test_a_view_of_what_lies_otherwise_than_was_captured_is_a_copy(name: str) -> None:
    rows = torch.arange(6.0).view(2, 3)
    shares = kernel(name, CPU)(rows, [6])
    assert shares.data_ptr() == rows.data_ptr()
    assert torch.equal(kernel(name, CPU)(rows.t(), [6]), torch.tensor([0.0, 3, 1, 4, 2, 5]))
    with pytest.raises(RuntimeError, match="invalid for input of size 6"):
        kernel(name, CPU)(rows, [7])


# Strides.
@pytest.mark.parametrize(
    ("tensor", "dense"),
    [
        (torch.ones(2, 3), True),
        (torch.ones(2, 3).t(), True),
        (torch.ones(2, 1, 3).transpose(0, 1), True),
        (torch.ones(()), True),
        (torch.ones(2, 3)[:, :2], False),
        (torch.ones(3).expand(2, 3), False),
    ],
)
def test_a_dense_tensor_has_every_element_of_its_memory_once(
    tensor: torch.Tensor, dense: bool
) -> None:
    assert is_dense(tensor) is dense


def test_other_strides_are_copied_into_those_of_the_capture() -> None:
    source = torch.arange(6.0).view(2, 3)
    kernel_found = laid_out(source, (1, 2))
    assert kernel_found.stride() == (1, 2)
    assert torch.equal(kernel_found, source)


def test_the_same_strides_and_those_of_single_elements_stay() -> None:
    source = torch.ones(2, 1, 3)
    assert laid_out(source, (3, 3, 1)) is source
    assert laid_out(source, (3, 99, 1)) is source
