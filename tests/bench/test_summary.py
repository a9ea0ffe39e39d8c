"""Gaps of rows, and their means."""

from __future__ import annotations

import math

import pytest

from situate.bench.best_known import BestKnown
from situate.bench.summary import group_rows, means, row_gaps
from tests.bench.small import entry, row

KNOWN = BestKnown([entry(best=10, bound=8)])


def test_a_gap_is_to_the_best_known_and_to_the_bound():
    [judgement] = row_gaps([row(value=12)], KNOWN)
    assert judgement.gap == pytest.approx(0.2)
    assert judgement.bound_gap == pytest.approx(0.5)


def test_what_does_not_fit_has_an_infinite_gap():
    [judgement] = row_gaps([row(value=9, feasible=False)], KNOWN)
    assert judgement.gap == judgement.bound_gap == math.inf


def test_rounding_makes_no_gap_below_zero():
    [judgement] = row_gaps([row(value=10 - 1e-12)], KNOWN)
    assert judgement.gap == 0


def test_nothing_is_known_of_another_problem():
    [judgement] = row_gaps([row(problem="e00")], KNOWN)
    assert judgement.gap == math.inf


def test_a_best_value_of_zero_is_reached_or_infinitely_far():
    of_zero = BestKnown([entry(best=0)])
    assert [j.gap for j in row_gaps([row(value=0), row(value=1)], of_zero)] == [0, math.inf]


def test_means_are_of_plans_that_fit():
    rows = [row(value=10), row(value=11), row(value=None), row(value=None, refused="why")]
    [mean] = means(row_gaps(rows, KNOWN))
    assert (mean.runs, mean.refused, mean.fit, mean.reached) == (4, 1, 2, 1)
    assert mean.mean == mean.median == pytest.approx(0.05)
    assert mean.worst == pytest.approx(0.1)
    assert mean.bound_mean == pytest.approx(0.3125)


def test_where_nothing_fits_there_are_no_means():
    [mean] = means(row_gaps([row(value=None)], KNOWN))
    assert math.isnan(mean.mean)
    assert math.isnan(mean.bound_mean)


def test_methods_keep_the_order_of_their_rows():
    rows = row_gaps([row("heft"), row("auto"), row("heft")], KNOWN)
    assert [mean.method for mean in means(rows)] == ["heft", "auto"]
    assert {name: len(of) for name, of in group_rows(rows, lambda r: r.method).items()} == {
        "heft": 2,
        "auto": 1,
    }
