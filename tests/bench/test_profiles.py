"""Performance profiles, and gaps over time."""

from __future__ import annotations

import numpy as np
import pytest

from situate.bench.best_known import BestKnown
from situate.bench.profiles import gaps_over_time, profiles
from situate.bench.summary import row_gaps
from tests.bench.small import entry, row

KNOWN = BestKnown([entry(best=10)])


def test_a_profile_rises_by_every_run_that_fits():
    rows = row_gaps([row(value=12), row(value=10), row(value=None), row(value=11)], KNOWN)
    gaps, share = profiles(rows)["heft"]
    assert gaps == pytest.approx([0, 0.1, 0.2])
    assert share == pytest.approx([0.25, 0.5, 0.75])


def test_a_method_without_a_plan_that_fits_has_an_empty_profile():
    gaps, share = profiles(row_gaps([row(value=None)], KNOWN))["heft"]
    assert len(gaps) == len(share) == 0


def test_the_gap_over_time_falls_with_each_improvement():
    of = row(value=11, history=[(0.01, 15.0), (0.05, 11.0)])
    at, gaps = gaps_over_time(row_gaps([of], KNOWN))["heft"]
    assert np.isinf(gaps[at < 0.01]).all()
    assert gaps[(at >= 0.01) & (at < 0.05)] == pytest.approx(0.5)
    assert gaps[at >= 0.05] == pytest.approx(0.1)


def test_only_the_longest_runs_count_over_time():
    short = row(value=20, history=[(0.01, 20.0)])
    long = row(value=10, history=[(0.01, 10.0)], time_limit=1.0)
    at, gaps = gaps_over_time(row_gaps([short, long], KNOWN))["heft"]
    assert at[-1] == pytest.approx(1.0)
    assert gaps[-1] == 0


def test_the_median_is_infinite_while_half_of_the_runs_have_no_plan():
    fits = row(value=10, history=[(0.01, 10.0)])
    _, gaps = gaps_over_time(row_gaps([fits, row(value=None)], KNOWN))["heft"]
    assert np.isinf(gaps).all()
    _, gaps = gaps_over_time(row_gaps([fits, fits, row(value=None)], KNOWN))["heft"]
    assert gaps[-1] == 0
