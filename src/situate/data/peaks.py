"""The peak rate of a device in a dtype."""

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

    If the device does not state it, numbers of at most 8 bits have the rate of the next wider dtype
    of their sort, else of 16-bit floats. Other dtypes have the rate of float32. If that is not
    stated either, the rate is infinite: such a device runs no arithmetic.
    """
    if dtype in flops:
        return flops[dtype]
    rates = ([flops[word] for word in words if word in flops] for words in _instead(dtype))
    return next((max(stated) for stated in rates if stated), inf)


@lru_cache(maxsize=256)
def _instead(dtype: str) -> tuple[tuple[str, ...], ...]:
    """Dtypes whose rate stands in for an unstated rate of `dtype`, best first."""
    match = _NARROW.match(dtype)
    if match is None:
        return (("float32",),)
    wider = (_of(match[1], bits) for bits in range(int(match[2]), 9))
    return *wider, ("float16", "bfloat16"), ("float32",)


def _of(sort: str, bits: int) -> tuple[str, ...]:
    """Dtypes of a sort, `int` or `float`, with this number of bits."""
    matches = {name: _NARROW.match(name) for name in DTYPES}
    return tuple(n for n, match in matches.items() if match and match.groups() == (sort, str(bits)))
