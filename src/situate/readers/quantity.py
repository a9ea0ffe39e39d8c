"""Numbers in text formats."""

from __future__ import annotations

import math
import re

from situate.data.graph import BYTES_LIMIT
from situate.errors import ReadError


def whole(token: str, where: str) -> int:
    """A whole number that is not negative.

    Raises:
        ReadError: it is anything else.
    """
    if not re.fullmatch(r"\d{1,18}", token, re.ASCII):
        raise ReadError(f"{where}: must be a whole number, got {token[:40]!r}")
    return int(token)


def amount(token: str, where: str) -> float:
    """A finite number that is not negative.

    Raises:
        ReadError: it is anything else.
    """
    try:
        # `float` would accept underscores between digits.
        value = float(token) if "_" not in token else math.nan
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise ReadError(f"{where}: must be a finite number, not negative, got {token[:40]!r}")
    return value


def size(token: str, where: str) -> int:
    """Whole bytes, rounded up.

    Raises:
        ReadError: it is negative, no number or above 2^53.
    """
    value = amount(token, where)
    if value > BYTES_LIMIT:
        raise ReadError(f"{where}: must be at most 2^53 bytes, got {token[:40]!r}")
    return math.ceil(value)
