"""The penalty of a failure, on steps of any length."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.errors import MissingExtra
from situate.solvers import LEARNERS, solve
from situate.solvers.learned.learner import Learning, Settings
from situate.solvers.learned.penalty import FAILURE_SECONDS, MOST_SECONDS, failure_seconds
from tests.solvers.families import devices, fork


@pytest.mark.parametrize(
    ("seconds", "counted"),
    [(0.5, FAILURE_SECONDS), (2.0, 10 * 8 * 2.0), (1e290, MOST_SECONDS)],
)
def test_a_failure_is_no_good_step_however_long_steps_are(seconds, counted):
    assert failure_seconds(Problem(fork(8, seconds=seconds), devices(1, 2))) == counted


def _long(seconds: float) -> Graph:
    """Ops that take so long; every other one does not run on the first device."""
    graph = fork(8)
    times = ({"x1": seconds, "x2": seconds}, {"x2": 2 * seconds})
    ops = [structs.replace(op, seconds=times[i % 2]) for i, op in enumerate(graph.ops)]
    return replace(graph, ops=tuple(ops))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("method", LEARNERS)
@pytest.mark.parametrize("settings", ["paper", "tuned"])
def test_a_step_that_no_single_precision_number_holds_crashes_nothing(
    method: str, settings: Settings
) -> None:
    problem = Problem(_long(1e290), devices(1, 2, 2))
    try:
        result = solve(problem, method, evaluations=36, learning=Learning(settings=settings))
    except MissingExtra as missing:
        pytest.skip(str(missing))
    assert np.isfinite(result.samples).all()
