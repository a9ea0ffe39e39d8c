"""Work of the nodes of execution traces."""

from __future__ import annotations

import pytest

from situate.readers.execution_trace import work
from situate.readers.execution_trace.nodes import Node, nodes
from tests.readers.traces import execution_trace, node, tensor


def of(name: str, shapes: list, values: list | None = None, out: int = 4) -> Node:
    inputs = node(3, name, values or [0] * len(shapes), [tensor(9, out)], shapes=shapes)
    inputs["input_types"] = ["Int"] * len(inputs["inputs"])
    return nodes(execution_trace(inputs))[-1]


CONVOLUTION = [None, None, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1]


@pytest.mark.parametrize(
    ("node", "flops"),
    [
        (of("aten::mm", [[2, 3], [3, 5]]), 2 * 2 * 3 * 5),
        (of("aten::addmm", [[5], [2, 3], [3, 5]]), 2 * 2 * 3 * 5),
        (of("aten::bmm", [[7, 2, 3], [7, 3, 5]]), 2 * 7 * 2 * 3 * 5),
        (of("aten::baddbmm", [[7, 2, 5], [7, 2, 3], [7, 3, 5]]), 2 * 7 * 2 * 3 * 5),
        (of("aten::addbmm", [[2, 5], [7, 2, 3], [7, 3, 5]]), 2 * 7 * 2 * 3 * 5),
        (of("aten::_addmm_activation", [[5], [2, 3], [3, 5]]), 2 * 2 * 3 * 5),
        (of("aten::_int_mm", [[2, 3], [3, 5]]), 2 * 2 * 3 * 5),
        (of("aten::_scaled_mm", [[2, 3], [3, 5]]), 2 * 2 * 3 * 5),
        (of("aten::_weight_int8pack_mm", [[2, 3], [5, 3], [5]]), 2 * 2 * 3 * 5),
        (of("aten::mv", [[2, 3], [3]]), 2 * 2 * 3),
        (of("aten::relu", [[2, 3]]), 0),
        (of("aten::mm", [[], []]), 0),
        (of("aten::mm", [["x"], [3]]), 0),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_products_count_two_for_a_multiply_add(node, flops):
    assert work.flops(node, []) == flops


@pytest.mark.parametrize("shapes", [[[8, 3], [4, 3, 5]], [[4, 8, 3], [3, 5]], [[3, 8], [8, 5]]])
def test_of_groups_every_row_meets_one_matrix(shapes):
    assert work.flops(of("aten::_grouped_mm", shapes), []) == 2 * 8 * 3 * 5


def test_a_recurrent_layer_counts_both_products_of_every_step():
    """6 steps of 2 sequences, 3 numbers wide, and an LSTM's four gates of 5."""
    shapes = [[6, 2, 3], [20, 3], [20, 5]]
    once = 2 * 6 * 2 * 20 * (3 + 5)
    assert work.flops(of("aten::mkldnn_rnn_layer", shapes), []) == once
    assert work.flops(of("aten::mkldnn_rnn_layer_backward", shapes), []) == 2 * once


def test_a_bilinear_layer_counts_by_all_it_joins():
    shapes = [[3, 5], [7, 5, 6], [3, 6], [[], []], [[]], [[], []]]
    result = of("aten::_trilinear", shapes, [0, 0, 0, [1, 3], [0], [1, 2]])
    assert work.flops(result, []) == 2 * 3 * 7 * 5 * 6


def test_an_operator_of_another_library_is_no_product_by_its_name():
    assert work.flops(of("mine::mm", [[2, 3], [3, 5]]), []) == 0


@pytest.mark.parametrize("name", ["aten::convolution", "aten::_convolution"])
def test_a_convolution_counts_by_its_output(name):
    """4 images of 8 channels, 6 x 6, from 3 channels by 3 x 3."""
    result = of(name, [[4, 3, 6, 6], [8, 3, 3, 3]], CONVOLUTION, 4 * 8 * 36)
    assert work.flops(result, []) == 2 * (4 * 8 * 36) * (3 * 9)


def test_a_transposed_convolution_counts_by_its_input():
    transposed = [*CONVOLUTION[:6], True, [0, 0], 1]
    result = of("aten::convolution", [[4, 3, 6, 6], [3, 8, 3, 3]], transposed, 4 * 8 * 64)
    assert work.flops(result, []) == 2 * (4 * 3 * 36) * (8 * 9)


@pytest.mark.parametrize(("mask", "times"), [([True] * 3, 2), ([False, True, True], 1), ({}, 0)])
def test_the_way_back_counts_the_gradients_that_are_asked_for(mask, times):
    values = [None, None, None, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask]
    shapes = [[4, 8, 6, 6], [4, 3, 6, 6], [8, 3, 3, 3]]
    result = of("aten::convolution_backward", shapes, values)
    assert work.flops(result, []) == times * 2 * (4 * 8 * 36) * (3 * 9)


def test_attention_counts_its_products():
    """2 for scores and sum on the way forward, 5 on the way back."""
    query, key = [1, 2, 5, 8], [1, 2, 7, 8]
    product = 2 * 2 * 5 * 7 * 8
    forward = of("aten::_scaled_dot_product_flash_attention", [query, key, key])
    backward = of("aten::_scaled_dot_product_flash_attention_backward", [query, query, key, key])
    assert work.flops(forward, []) == 2 * product
    assert work.flops(backward, []) == 5 * product


def test_what_runs_inside_counts_once():
    """A convolution that is made of products is counted as a convolution."""
    outer = node(3, "aten::linear")
    inner = node(4, "aten::addmm", [0, 0, 0], parent=3, shapes=[[5], [2, 3], [3, 5]])
    innermost = node(5, "aten::mm", [0, 0], parent=4, shapes=[[2, 3], [3, 5]])
    for part in (inner, innermost):
        part["input_types"] = ["Int"] * 3
    *_, first, second, third = nodes(execution_trace(outer, inner, innermost))
    assert work.flops(first, [second, third]) == 2 * 2 * 3 * 5


def test_the_dtype_is_the_first_that_floats():
    mixed = node(3, "aten::f", [tensor(1), tensor(2)], types=["Tensor(long int)", "Tensor(double)"])
    assert work.dtype(nodes(execution_trace(mixed))[-1]) == "float64"
    complex_ = node(
        3, "aten::f", [tensor(1)] * 2, types=["Tensor(int)", "Tensor(c10::complex<double>)"]
    )
    assert work.dtype(nodes(execution_trace(complex_))[-1]) == "complex128"
    whole = node(3, "aten::f", [tensor(1)], types=["Tensor(long int)"])
    assert work.dtype(nodes(execution_trace(whole))[-1]) == "int64"
    assert work.dtype(nodes(execution_trace(node(3, "aten::f")))[-1]) == "float32"


@pytest.mark.parametrize(
    ("name", "arguments", "op", "dtype"),
    [
        ("aten::_int_mm", "signed char", "int", "int8"),
        ("aten::_scaled_mm", "c10::Float8_e4m3fn", "c10::BFloat16", "float8_e4m3fn"),
    ],
)
def test_a_product_of_8_bits_counts_in_what_it_multiplies(name, arguments, op, dtype):
    product = node(3, name, [tensor(1), tensor(2)], [tensor(3)], shapes=[[2, 3], [3, 5]])
    product["input_types"] = [f"Tensor({arguments})"] * 2
    product["output_types"] = [f"Tensor({op})"]
    call = nodes(execution_trace(product))[-1]
    assert work.dtype(call) == dtype
    assert work.flops(call, []) == 2 * 2 * 3 * 5
