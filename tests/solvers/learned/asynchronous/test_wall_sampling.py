"""Controllers by the wall clock: who ends first is learnt from first, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.evaluators.measurements import Measurements  # noqa: E402
from situate.results.result import Result  # noqa: E402
from situate.solvers import solve  # noqa: E402
from situate.solvers.learned.learner import Learning  # noqa: E402
from situate.study import Study  # noqa: E402
from tests.evaluators.workers.faulty import Straggling  # noqa: E402
from tests.solvers.learned.asynchronous.test_controllers import METHODS, PROBLEM  # noqa: E402

BATCH, SAMPLES = 12, 48


def _learn(method: str, evaluator: Straggling, **learning: Any) -> Result:
    return solve(
        PROBLEM,
        method,
        evaluations=SAMPLES,
        seed=1,
        learning=Learning(
            evaluator=evaluator, groups=12, workers=2, controllers=2, clock="wall", **learning
        ),
    )


# On the wall clock the order of events is that of the workers, and still nothing is lost.


@pytest.mark.parametrize("method", METHODS)
def test_who_ends_first_is_learnt_from_first(method: str, tmp_path: Path) -> None:
    firsts: list[int] = []
    machine = Straggling(tmp_path, last=2 * BATCH - 1)
    result = _learn(method, machine, on_measured=lambda first, _: firsts.append(first))
    assert firsts[0] == BATCH
    assert sorted(firsts) == list(range(0, SAMPLES, BATCH))
    assert len(result.samples) == SAMPLES
    assert result.asynchrony is not None
    assert result.asynchrony.clock == "wall"
    assert sum(result.asynchrony.staleness.values()) == len(firsts)
    assert max(result.asynchrony.staleness) >= 1


@pytest.mark.parametrize("method", METHODS)
def test_what_is_killed_goes_on_and_measures_nothing_twice_that_was_kept(
    method: str, tmp_path: Path
) -> None:
    class Killed(Exception):
        pass

    firsts: list[int] = []

    def kill(first: int, _: Measurements) -> None:
        firsts.append(first)
        if len(firsts) == 3:
            raise Killed

    machine, study = Straggling(tmp_path, last=2 * BATCH - 1), tmp_path / "study"
    with pytest.raises(Killed):
        _learn(method, machine, study=study, on_measured=kill)
    numbers_before = range(len(Study.read(study)))
    attempts = [machine.attempts(number) for number in numbers_before]
    result = _learn(method, machine, study=study)
    records = Study.read(study)
    assert len(records) == SAMPLES == len(result.samples)
    assert sorted(result.samples) == sorted(records.measurements.seconds)
    assert [machine.attempts(number) for number in numbers_before] == attempts
    numbers = np.arange(SAMPLES) + 1.0
    of_placements = np.array([placement.sum() for placement in records.placements()])
    assert np.allclose(records.measurements.seconds, numbers * (1 + of_placements / 100))
