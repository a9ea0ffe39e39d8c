"""Tables of a benchmark."""

from __future__ import annotations

import math

import pytest
from rich.console import Console

from situate.bench.best_known import BestKnown
from situate.bench.families import FAMILIES
from situate.bench.tables import comparison, families, group_rows, means, row_gaps
from tests.bench.small import entry, row

BEST = BestKnown([entry(best=10, bound=8)])


# Gaps of rows, and their means.
def test_a_gap_is_to_the_best_known_and_to_the_bound():
    [judgement] = row_gaps([row(value=12)], BEST)
    assert judgement.gap == pytest.approx(0.2)
    assert judgement.bound_gap == pytest.approx(0.5)


def test_what_does_not_fit_has_an_infinite_gap():
    [judgement] = row_gaps([row(value=9, feasible=False)], BEST)
    assert judgement.gap == judgement.bound_gap == math.inf


def test_rounding_makes_no_gap_below_zero():
    [judgement] = row_gaps([row(value=10 - 1e-12)], BEST)
    assert judgement.gap == 0


def test_nothing_is_known_of_another_problem():
    [judgement] = row_gaps([row(problem="e00")], BEST)
    assert judgement.gap == math.inf


def test_a_best_value_of_zero_is_reached_or_infinitely_far():
    of_zero = BestKnown([entry(best=0)])
    assert [j.gap for j in row_gaps([row(value=0), row(value=1)], of_zero)] == [0, math.inf]


def test_means_are_of_plans_that_fit():
    rows = [row(value=10), row(value=11), row(value=None), row(value=None, refused="why")]
    [mean] = means(row_gaps(rows, BEST))
    assert (mean.runs, mean.refused, mean.fit, mean.reached) == (4, 1, 2, 1)
    assert mean.mean == mean.median == pytest.approx(0.05)
    assert mean.worst == pytest.approx(0.1)
    assert mean.bound_mean == pytest.approx(0.3125)


def test_where_nothing_fits_there_are_no_means():
    [mean] = means(row_gaps([row(value=None)], BEST))
    assert math.isnan(mean.mean)
    assert math.isnan(mean.bound_mean)


def test_methods_keep_the_order_of_their_rows():
    rows = row_gaps([row("heft"), row("auto"), row("heft")], BEST)
    assert [mean.method for mean in means(rows)] == ["heft", "auto"]
    assert {name: len(of) for name, of in group_rows(rows, lambda r: r.method).items()} == {
        "heft": 2,
        "auto": 1,
    }


def text(table) -> str:
    console = Console(width=160, markup=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_all_families_are_listed():
    output = text(families())
    assert all(name in output for name in FAMILIES)
    assert "dnn-partitioning/" in output
    assert " 24 " in output


def test_small_gaps_keep_their_digits_and_large_ones_do_not():
    table = BestKnown([entry(best=10_000, bound=8_000)])
    output = text(comparison(row_gaps([row(value=10_001), row("etf", 25_000)], table)))
    assert "0.010 %" in output
    assert "150 %" in output
    assert "25.01 %" in output


def test_each_family_and_time_limit_has_a_table():
    rows = [row(), row(time_limit=1.0), row(family="other")]
    output = text(comparison(row_gaps(rows, BestKnown([entry(best=10)]))))
    assert [line for line in output.splitlines() if "instance" in line] == [
        "small: 1 instance, 0.1 s", "small: 1 instance, 1 s", "other: 1 instance, 0.1 s"
    ]  # fmt: skip


def test_runs_to_which_a_method_does_not_apply_are_told_apart():
    rows = [row(), row(value=None, refused="why")]
    assert "1 of 2" in text(comparison(row_gaps(rows, BestKnown([entry(best=10)]))))


def test_names_from_files_are_only_text():
    output = text(comparison(row_gaps([row(family="\x1b[31mred")], BestKnown())))
    assert "\x1b" not in output
