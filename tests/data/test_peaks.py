"""The rate at which a device multiplies numbers of a dtype."""

from __future__ import annotations

import math

import pytest

from situate.data.peaks import peak

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
