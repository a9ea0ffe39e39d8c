"""The one place where seconds, bytes and counts become text."""

from __future__ import annotations

import math

TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
ROUNDING_SECONDS = 5e-13
"""Times below this are rounding errors of zero."""
SIZES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
COUNTS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def time_scale(span: float, unit: str = "s") -> tuple[float, str]:
    """The divisor of times of about `span`, and the name of the resulting unit; 1 without a
    unit."""
    if unit == "" or not math.isfinite(span) or span <= 0:
        return 1.0, unit
    return next((scale for scale in TIMES if span >= scale[0]), TIMES[-1])


def _size_scale(span: float) -> tuple[float, str]:
    """The divisor of sizes of about `span` bytes, and the name of the resulting unit."""
    return next((scale for scale in SIZES if span >= scale[0]), (1.0, "B"))


def time_text(value: float, unit: str = "s") -> str:
    """`12.3 ms` for graphs in seconds, `1,200.07` for graphs without a unit."""
    if not math.isfinite(value):
        return "never" if value > 0 else "unknown"
    if not unit:
        return _number_text(value)
    if abs(value) < ROUNDING_SECONDS:
        return "0 s"
    scale, name = time_scale(_rounded(abs(value)), unit)
    return f"{_three_digits(value / scale)} {name}"


def size_text(value: float) -> str:
    """Bytes as `9.81 GiB`."""
    if not math.isfinite(value):
        return "unknown"
    scale, name = _size_scale(abs(value))
    # 1023.9 MiB would read 1024 MiB, so it is 1 GiB.
    if round(abs(value) / scale) == 1024:
        scale, name = _size_scale(1024 * scale)
    return f"{_three_digits(value / scale)} {name}" if scale > 1 else f"{value:,.0f} B"


def enough_text(value: int) -> str:
    """Bytes as `9.82 GiB`, rounded up: so much memory is enough."""
    scale, name = _size_scale(value)
    decimals = _decimals(value / scale) if scale > 1 else 0
    # `-(-a // b)` rounds up, exactly, because all numbers are integers.
    steps = -(-value * 10**decimals // int(scale))
    return f"{steps / 10**decimals:,.{decimals}f} {name}"


def count_text(value: float) -> str:
    """A large count as `6.28 T`."""
    scale, name = next((s for s in COUNTS if abs(value) >= s[0]), (1.0, ""))
    return f"{_three_digits(value / scale)} {name}" if name else f"{value:,.0f}"


def _number_text(value: float) -> str:
    """A number without a unit: an integer as it is, else six significant digits or more."""
    if value == int(value):
        return f"{int(value):,}"
    decimals = max(2, 5 - math.floor(math.log10(abs(value)))) if abs(value) < 1000 else 2
    return f"{value:,.{decimals}f}".rstrip("0").rstrip(".")


def share_text(value: float) -> str:
    """A fraction as `12.3 %`."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else "unknown"


def gap_text(value: float) -> str:
    """A gap as `12.3 %`. Only a gap of zero proves a plan optimal, so no other shows as zero."""
    if value == 0:
        return "optimal"
    return "< 0.1 %" if 0 < value < 0.0005 else share_text(value)


def value_text(value: float, objective: str, unit: str = "s") -> str:
    """An objective's value: seconds of a step, bytes of a peak, seconds between steps."""
    return size_text(value) if objective == "memory" else time_text(value, unit)


def _three_digits(value: float) -> str:
    return f"{value:,.{_decimals(value)}f}"


def _decimals(value: float) -> int:
    """Decimals that give a value three digits."""
    size = _rounded(abs(value))
    decimals = 2 - math.floor(math.log10(size)) if 0 < size < 1000 else 0
    return min(max(decimals, 0), 3)


def _rounded(value: float) -> float:
    """To three digits."""
    return float(f"{value:.3g}")
