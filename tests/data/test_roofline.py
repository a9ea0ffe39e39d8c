"""Seconds of an op: its own where it has them, else the roofline's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.data.op_classes import EFFICIENCY
from situate.data.roofline import op_seconds, peak
from situate.errors import SituateError

GPU = Device(
    "gpu0",
    model="K80",
    flops={"float32": 1e12, "float16": 4e12},
    bandwidth=1e11,
    launch=1e-5,
)
CPU = Device("cpu0", kind="cpu", flops={"float32": 1e11}, bandwidth=1e10)


def seconds(op: Op, *devices: Device) -> list[float]:
    cluster = Cluster("c", devices, (Link("*", "*", 1e9),))
    return op_seconds(Graph("g", (op,)), cluster)[0].tolist()


def test_an_op_bound_by_arithmetic_takes_its_flops_over_the_rate_its_class_reaches():
    expected = 1e-5 + 1e9 / (1e12 * EFFICIENCY["matmul"])
    assert seconds(Op("a", "aten.mm", flops=10**9, traffic=8), GPU) == pytest.approx([expected])


def test_an_op_bound_by_memory_takes_its_traffic_over_the_rate_its_class_reaches():
    expected = 1e-5 + 1e9 / (1e11 * EFFICIENCY["elementwise"])
    op = Op("a", "aten.relu.default", flops=8, traffic=10**9)
    assert seconds(op, GPU) == pytest.approx([expected])


def test_an_op_without_work_takes_no_time_and_no_launch():
    assert seconds(Op("a", "aten.view"), GPU, CPU) == [0.0, 0.0]


def test_the_rate_is_that_of_the_dtype_and_float32_where_the_device_has_none():
    half = seconds(Op("a", "aten.mm", flops=10**9, dtype="float16"), GPU, CPU)
    single = seconds(Op("a", "aten.mm", flops=10**9), GPU, CPU)
    assert half[0] - 1e-5 == pytest.approx((single[0] - 1e-5) / 4)
    assert half[1] == single[1]


def test_a_device_may_state_the_efficiency_of_a_class():
    slow = Device("slow", flops={"float32": 1e12}, efficiency={"convolution": 0.1})
    op = Op("a", "aten.convolution", flops=10**9)
    assert seconds(op, slow) == pytest.approx([1e-2])


def test_own_seconds_hold_as_they_are_without_launch():
    assert seconds(Op("a", seconds={"*": 0.25}, flops=10**12), GPU, CPU) == [0.25, 0.25]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"gpu0": 1.0, "K80": 2.0, "gpu": 3.0, "accelerator": 4.0, "*": 5.0}, [1.0, 5.0]),
        ({"K80": 2.0, "gpu": 3.0, "accelerator": 4.0, "*": 5.0}, [2.0, 5.0]),
        ({"gpu": 3.0, "accelerator": 4.0, "cpu": 6.0}, [3.0, 6.0]),
        ({"accelerator": 4.0, "*": 5.0}, [4.0, 5.0]),
        ({"accelerator": 4.0}, [4.0, np.inf]),
        ({"cpu0": 7.0}, [np.inf, 7.0]),
        ({}, [np.inf, np.inf]),
    ],
)
def test_own_seconds_are_looked_up_by_name_model_kind_accelerator_and_star(table, expected):
    assert seconds(Op("a", seconds=table), GPU, CPU) == expected


def test_an_empty_model_is_no_key():
    assert seconds(Op("a", seconds={"": 1.0, "*": 2.0}), CPU) == [2.0]


def test_a_device_without_the_rate_an_op_needs_is_an_error_that_says_what_to_give():
    with pytest.raises(
        SituateError, match=r"op 'a' on device 'd0': .*: plan on a preset or a TOML file"
    ):
        seconds(Op("a", "aten.mm", flops=1), Device("d0"))
    with pytest.raises(SituateError, match="op 'a' on device 'd0'"):
        seconds(Op("a", "aten.relu", traffic=1), Device("d0"))


@pytest.mark.parametrize(
    "device",
    [Device("d0", flops={"float32": 1e-300}), Device("d0", flops=GPU.flops, bandwidth=1e-300)],
)
def test_a_rate_too_small_to_divide_by_is_an_error(device: Device):
    with pytest.raises(SituateError, match=r"op 'a' on device 'd0': takes more seconds than"):
        seconds(Op("a", "aten.mm", flops=10**12, traffic=10**12), device)


def test_a_device_without_rates_is_fine_for_ops_that_need_none():
    assert seconds(Op("a", seconds={"*": 1.0}), Device("d0")) == [1.0]
    assert seconds(Op("a", "aten.view"), Device("d0")) == [0.0]


def test_ops_with_and_without_own_seconds_keep_their_rows():
    ops = (
        Op("a", "aten.mm", flops=7 * 10**11),
        Op("b", seconds={"gpu": 2.0}),
        Op("c"),
        Op("d", "aten.add", traffic=10**10),
    )
    cluster = Cluster("c", (GPU, CPU), (Link("*", "*", 1e9),))
    rows = op_seconds(Graph("g", ops), cluster)
    alone = [seconds(op, GPU, CPU) for op in ops]
    assert rows.tolist() == alone


def test_many_devices_of_equal_rates_have_equal_columns():
    many = [Device(f"gpu{i}", flops=GPU.flops, bandwidth=1e11) for i in range(16)]
    row = seconds(Op("a", "aten.mm", flops=10**9), *many, CPU)
    assert len(set(row[:16])) == 1
    assert row[16] > row[0]


def test_a_device_known_by_its_bandwidth_alone_runs_ops_that_only_move_bytes():
    device = Device("d0", bandwidth=1e9, efficiency={"elementwise": 0.5})
    assert seconds(Op("a", "aten.relu", traffic=10**9), device) == [2.0]
    with pytest.raises(SituateError, match=r"'d0' has no rate for float32 \(it has none\): add it"):
        seconds(Op("a", "aten.relu", flops=1, traffic=10**9), device)


def test_a_device_with_rates_of_other_dtypes_is_named_with_the_one_to_add():
    device = Device("d0", flops={"float16": 1e12, "float64": 1e10}, bandwidth=1e9)
    with pytest.raises(SituateError) as error:
        seconds(Op("a", "aten.mm", flops=1, dtype="float32"), device)
    assert str(error.value) == (
        "op 'a': device 'd0' has no rate for float32 (it has float16, float64): add it to its flops"
    )


def test_ops_with_keys_of_their_own_share_no_column_but_among_equal_devices():
    ops = (Op("a", seconds={"gpu0": 1.0, "*": 2.0}), Op("b", seconds={"gpu1": 3.0, "gpu": 4.0}))
    devices = Device("gpu0"), Device("gpu1"), Device("gpu2")
    cluster = Cluster("c", devices, (Link("*", "*", 1e9),))
    assert op_seconds(Graph("g", ops), cluster).tolist() == [[1, 2, 2], [4, 3, 4]]


def test_bytes_are_multiplied_no_slower_than_half_precision():
    """On a device that states no rate of theirs."""
    half = seconds(Op("a", "aten.mm", flops=10**9, dtype="float16"), GPU)
    assert seconds(Op("a", "aten._int_mm", flops=10**9, dtype="int8"), GPU) == half
    assert seconds(Op("a", "onnx.MatMulInteger", flops=10**9, dtype="uint8"), GPU) == half


# The rate at which a device multiplies numbers of a dtype.
RATES = {"float32": 1.0, "float16": 2.0, "bfloat16": 3.0}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_dtype_that_is_stated_has_its_own_rate(dtype: str):
    assert peak(RATES, dtype) == RATES[dtype]


@pytest.mark.parametrize("dtype", ["float64", "int64", "int16", "bool", "complex64", ""])
def test_what_is_not_stated_runs_as_float32(dtype: str):
    assert peak(RATES, dtype) == 1.0


@pytest.mark.parametrize("dtype", ["int8", "uint8", "qint8", "quint8"])
def test_bytes_with_and_without_sign_have_one_rate(dtype: str):
    assert peak(RATES | {"int8": 6.0}, dtype) == 6.0
    assert peak(RATES | {"uint8": 6.0, "float8_e4m3fn": 9.0}, dtype) == 6.0


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8e4m3fn", "float8e5m2"])
def test_floats_of_8_bits_have_one_rate(dtype: str):
    assert peak(RATES | {"float8_e4m3fn": 6.0, "int8": 9.0}, dtype) == 6.0


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float8_e4m3fn", "float8e5m2", "int4"])
def test_without_units_for_8_bits_those_for_16_multiply(dtype: str):
    assert peak(RATES, dtype) == 3.0
    assert peak({"float32": 1.0, "float16": 2.0}, dtype) == 2.0
    assert peak({"float32": 1.0, "float64": 0.5}, dtype) == 1.0


@pytest.mark.parametrize(
    ("dtype", "rate"), [("int4", 6.0), ("uint4", 6.0), ("float4_e2m1fn_x2", 8.0)]
)
def test_without_units_for_4_bits_those_for_8_multiply(dtype: str, rate: float):
    assert peak(RATES | {"int8": 6.0, "float8_e5m2": 8.0}, dtype) == rate


def test_a_device_without_any_of_them_has_no_end_of_speed():
    assert peak({"float64": 1.0}, "int8") == math.inf
    assert peak({}, "float32") == math.inf
