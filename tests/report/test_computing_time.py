from __future__ import annotations

import numpy as np

from situate.report.computing_time import computing_time, covered
from tests.report.handmade import chain, schedule


def test_each_device_computes_as_long_as_its_ops() -> None:
    problem = chain(3, devices=3)
    assert computing_time(problem, schedule(problem, [0, 1, 0])).tolist() == [2, 1, 0]


def test_what_never_ends_has_no_length() -> None:
    assert np.isnan(covered(np.array([0.0, np.inf]), np.array([1.0, np.inf])))


def test_what_overlaps_counts_once() -> None:
    assert covered(np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 6.0])) == 4
    assert covered(np.array([0.0, 1.0]), np.array([9.0, 2.0])) == 9
