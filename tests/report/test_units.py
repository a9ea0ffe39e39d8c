from __future__ import annotations

import math

import pytest

from situate.report import units


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "s", "0 s"),
        (1e-16, "s", "0 s"),
        (1.5, "s", "1.50 s"),
        (0.0123, "s", "12.3 ms"),
        (4.2e-6, "s", "4.20 µs"),
        (7200, "s", "7,200 s"),
        (0.9999999, "s", "1.00 s"),
        (9.999999e-4, "s", "1.00 ms"),
        (9.999e-3, "s", "10.0 ms"),
        (0.9994, "s", "999 ms"),
        (1200.07, "", "1,200.07"),
        (42.0, "", "42"),
        (0.10971, "", "0.10971"),
        (1e-9, "", "0.000000001"),
        (math.inf, "s", "never"),
        (math.nan, "s", "unknown"),
    ],
)
def test_times(value: float, unit: str, text: str) -> None:
    assert units.time_text(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.00 KiB"),
        (1023.9 * 2**20, "1.00 GiB"),
        (1023.4 * 2**20, "1,023 MiB"),
        (1023.9 * 2**40, "1,024 TiB"),
        (11 * 2**30, "11.0 GiB"),
        (-(2**20), "-1.00 MiB"),
        (math.inf, "unknown"),
    ],
)
def test_sizes(value: float, text: str) -> None:
    assert units.size_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (231, "231 B"),
        (1024, "1.00 KiB"),
        (1025, "1.01 KiB"),
        (1543884168, "1.44 GiB"),
        (1546188227, "1.45 GiB"),
        (2**40 - 1, "1,024 GiB"),
        (2**52 + 1, "4,097 TiB"),
    ],
)
def test_sizes_that_must_hold_something_are_rounded_up(value: int, text: str) -> None:
    assert units.enough_text(value) == text


def test_counts() -> None:
    assert [units.count_text(x) for x in (7, 6.28e12, 1234)] == ["7", "6.28 T", "1.23 k"]


def test_shares() -> None:
    assert [units.share_text(x) for x in (0.1234, math.inf)] == ["12.3 %", "unknown"]


@pytest.mark.parametrize(
    ("gap", "text"),
    [
        (0.0, "optimal"),
        (1e-9, "< 0.1 %"),
        (1.8e-4, "< 0.1 %"),
        (0.0006, "0.1 %"),
        (0.0049999, "0.5 %"),
        (0.123, "12.3 %"),
        (math.inf, "unknown"),
    ],
)
def test_only_a_gap_of_zero_is_called_optimal(gap: float, text: str) -> None:
    assert units.gap_text(gap) == text


def test_values_are_bytes_for_the_memory_objective_and_times_for_the_others() -> None:
    assert units.value_text(2048, "memory") == "2.00 KiB"
    assert units.value_text(0.002, "throughput") == "2.00 ms"


@pytest.mark.parametrize(("span", "name"), [(2, "s"), (0.2, "ms"), (2e-5, "µs"), (1e-12, "ns")])
def test_axes_get_the_unit_that_suits_their_span(span: float, name: str) -> None:
    assert units.time_scale(span)[1] == name


def test_graphs_without_a_unit_are_not_scaled() -> None:
    assert units.time_scale(0.001, "") == (1.0, "")
