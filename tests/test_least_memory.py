"""What the fullest device holds at least."""

from __future__ import annotations

from situate.least_memory import least_peak
from situate.problem import Problem
from tests.solvers.families import apart, devices, fork


def test_the_peak_holds_a_share_a_unit_and_what_one_op_needs() -> None:
    share = Problem(apart(4, persistent=10), devices(1, 1), "memory")
    unit = Problem(apart(4, persistent=10, group="g"), devices(1, 1), "memory")
    one_op = Problem(fork(5, size=7, workspace=2), devices(1, 1), "memory")
    assert (least_peak(share), least_peak(unit), least_peak(one_op)) == (20, 40, 23)
