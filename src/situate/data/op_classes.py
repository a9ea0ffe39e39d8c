"""Op classes, the fraction of a device's peak that each reaches, and the names of dtypes."""

from __future__ import annotations

import re
from functools import lru_cache

EFFICIENCY: dict[str, float] = {
    "attention": 0.5,
    "collective": 0.7,
    "convolution": 0.5,
    "embedding": 0.4,
    "matmul": 0.7,
    "update": 0.75,
    "reduction": 0.6,
    "elementwise": 0.75,
}
"""Default fraction of a device's peak FLOP/s and bandwidth by op class; docs/costs.md has the
sources. A device's own `efficiency` replaces entries of it."""

_PATTERNS: tuple[tuple[str, str], ...] = (
    ("collective", r"all_?reduce|all_?gather|all_?to_?all|reduce_?scatter|broadcast_tensors|nccl"),
    ("attention", r"attention|sdpa"),
    ("embedding", r"embedding|gather|scatter|index|^take|lookup|one_?hot"),
    ("convolution", r"conv(?!ert)|im2col|col2im"),
    (
        "matmul",
        r"mm(_|$|\d)|matmul|gemm|(^(bi|tri)?|_)linear(_|$)|einsum|lstm|gru|rnn|(^|_)dot|^mv|addmv",
    ),
    ("update", r"adam|sgd|momentum|rmsprop|adagrad|gradientdescent|update"),
    (
        "reduction",
        r"norm|softmax|pool|sum|mean|^var|^std|prod$|^a?max$|^a?min$|argm|arg_m|topk|sort|reduce"
        r"|loss|entropy|^lrn|logsumexp|l2loss|biasaddgrad",
    ),
)


@lru_cache(maxsize=4096)
def op_class(kind: str) -> str:
    """The op class, a key of `EFFICIENCY`, of an operator type.

    Operator types are such as `aten.addmm.default`, `onnx.Gemm` or TensorFlow's `MatMul`; unknown
    ones are `elementwise`.
    """
    words = kind.split(".")
    name = words[1] if len(words) > 1 else words[0]
    return _class_of_name(name.removeprefix("_").lower())


def _class_of_name(name: str) -> str:
    for op_class_name, pattern in _PATTERNS:
        if re.search(pattern, name):
            return op_class_name
    return "elementwise"


# fmt: off
# Names of element types, in the words of PyTorch and of ONNX.
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
