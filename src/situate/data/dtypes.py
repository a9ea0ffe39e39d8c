"""Names of element types, in the words of PyTorch and of ONNX."""

from __future__ import annotations

# fmt: off
DTYPES = frozenset({
    "float64", "float32", "tfloat32", "float16", "bfloat16", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0",
    "float4e2m1", "complex32", "complex64", "complex128", "int64", "int32", "int16", "int8",
    "int4", "int2", "uint64", "uint32", "uint16", "uint8", "uint4", "uint2", "qint32", "qint8",
    "quint8", "bool",
})
# fmt: on
"""Dtypes for which a device may state a peak."""

NAMES = DTYPES | {
    *("", "undefined", "string", "quint4x2", "quint2x4", "float6e2m3", "float6e3m2"),
    *(f"{sort}{bits}" for sort in ("int", "uint") for bits in range(1, 8)),
    *("bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"),
}
"""Dtypes of ops; empty if unknown."""
