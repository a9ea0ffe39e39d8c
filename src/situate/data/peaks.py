"""The peak rate at which a device computes in a dtype."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import inf

from situate.data.dtypes import DTYPES

_NARROW = re.compile(r"q?u?(int|float)(\d)(?!\d)")
"""Numbers of at most 8 bits: their sort and how many."""


def peak(flops: Mapping[str, float], dtype: str) -> float:
    """FLOP/s in `dtype`.

    Where the device states none, numbers of at most 8 bits are multiplied as others of their sort
    that are as wide or wider, or as floats of 16 bits; all else runs at the rate of float32. It is
    infinite where that is not stated either: such a device runs no arithmetic.
    """
    if dtype in flops:
        return flops[dtype]
    rates = ([flops[word] for word in words if word in flops] for words in _instead(dtype))
    return next((max(stated) for stated in rates if stated), inf)


@lru_cache(maxsize=256)
def _instead(dtype: str) -> tuple[tuple[str, ...], ...]:
    """Names of dtypes whose rate holds where that of `dtype` is not stated, first ones first."""
    match = _NARROW.match(dtype)
    if match is None:
        return (("float32",),)
    wider = (_of(match[1], bits) for bits in range(int(match[2]), 9))
    return *wider, ("float16", "bfloat16"), ("float32",)


def _of(sort: str, bits: int) -> tuple[str, ...]:
    """Names of the dtypes of a sort, `int` or `float`, with so many bits."""
    matches = {name: _NARROW.match(name) for name in DTYPES}
    return tuple(n for n, match in matches.items() if match and match.groups() == (sort, str(bits)))
