"""Equal shares of slices and parameters."""

from __future__ import annotations

import pytest

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers import solve
from tests.solvers.families import chain, devices
from tests.solvers.heuristics.test_data_parallel import places
from tests.solvers.slices import sliced


def test_slices_and_bytes_are_shared_equally_whatever_the_speed():
    placed = places(Problem(sliced(1, 1, 1, 1), devices(1, 2)), "fsdp")
    assert [placed[f"slice{s}/a"] for s in range(4)] == ["d0", "d1", "d0", "d1"]
    assert {placed["a"], placed["b"]} == {"d0", "d1"}


def test_a_step_that_takes_its_batch_whole_is_refused():
    with pytest.raises(SituateError, match="takes its batch whole"):
        solve(Problem(chain(3), devices(1, 1)), "fsdp")
