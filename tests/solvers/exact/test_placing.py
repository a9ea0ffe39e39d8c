"""A placement decides what is sent."""

from __future__ import annotations

import pytest

from situate.data.problem import Problem
from situate.solvers.exact.installed import cp_model
from situate.solvers.exact.placing import OutOfTime, Placing
from tests.solvers.exact.solved import least, placed
from tests.solvers.families import devices, fork, pinned_and_grouped
from tests.solvers.programs import needs_ortools

pytestmark = needs_ortools


def test_units_are_where_they_may_be():
    placing = placed(Problem(pinned_and_grouped(), devices(1, 2, 1)))
    assert sorted(placing.on) == [(0, 1), (1, 2), (2, 0)]
    assert placing.devices(1) == [2]


@pytest.mark.parametrize(
    ("where", "sent"), [((0, 0, 0, 0), 0), ((0, 1, 1, 1), 1), ((0, 1, 0, 0), 2), ((0, 1, 1, 0), 3)]
)
def test_a_tensor_is_sent_once_to_each_device_that_reads_it(where, sent):
    placing = placed(Problem(fork(4), devices(1, 1)), *where)
    assert least(placing, sum(placing.received.values())) == [sent]
    placing = placed(Problem(fork(4), devices(1, 1)), *where)
    assert least(placing, sum(placing.occurs)) == [sent]


def test_moves_and_arrivals_are_known_by_tensor():
    placing = placed(Problem(fork(4), devices(1, 1, 1)))
    assert len(placing.moves_from_home[0]) == 6
    assert placing.arrivals_of[1] == [(1, 0), (1, 1), (1, 2)]
    assert placing.readers(0, 2) == [1, 2]
    assert placing.home(2) == 2


def test_a_model_is_not_made_further_than_its_time():
    with pytest.raises(OutOfTime):
        Placing(Problem(fork(4), devices(1, 1)), cp_model().CpModel(), lambda: True)
