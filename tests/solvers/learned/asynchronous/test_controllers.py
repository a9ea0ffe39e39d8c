"""Controllers share a policy, and learn in the order of a virtual clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.problem import Problem  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.results.result import Result  # noqa: E402
from situate.solvers import solve  # noqa: E402
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock  # noqa: E402
from situate.solvers.learned.learner import Learning  # noqa: E402
from situate.study import Study, file  # noqa: E402
from tests.solvers.families import devices, layered  # noqa: E402

PROBLEM = Problem(layered(4, 3, 1, persistent=1), devices(1, 1, 2, memory=10))
METHODS = ("colocrl", "hierarchical")


def _learn(method: str, samples: int = 96, **learning: object) -> Result:
    return solve(
        PROBLEM,
        method,
        evaluations=samples,
        seed=1,
        learning=Learning(**{"noise": 0.1, "groups": 12} | learning),  # type: ignore[arg-type]
    )


# Staleness is the number of other controllers' updates since the pull.


@pytest.mark.parametrize("method", METHODS)
def test_one_controller_learns_as_one_that_waits(method: str) -> None:
    alone, waiting = _learn(method, controllers=1), _learn(method)
    assert np.array_equal(alone.samples, waiting.samples)
    assert alone.asynchrony is not None
    assert set(alone.asynchrony.staleness) == {0}
    assert waiting.asynchrony is None


@pytest.mark.parametrize("method", METHODS)
def test_gradients_are_as_stale_as_there_are_other_controllers(method: str) -> None:
    result = _learn(method, samples=240, controllers=4)
    assert result.asynchrony is not None
    staleness = result.asynchrony.staleness
    mean = sum(late * count for late, count in staleness.items()) / sum(staleness.values())
    assert 2 < mean <= 3
    assert result.asynchrony.seconds > 0


def test_a_slow_controller_is_staler_than_a_fast_one() -> None:
    equal = _learn("colocrl", samples=480, controllers=2)
    clock = VirtualClock(workers=12, slowness=(1.0,) * 12 + (4.0,) * 12)
    unequal = _learn("colocrl", samples=480, controllers=2, clock=clock)
    assert equal.asynchrony is not None
    assert unequal.asynchrony is not None
    assert max(unequal.asynchrony.staleness) > max(equal.asynchrony.staleness)
    assert unequal.asynchrony.seconds > equal.asynchrony.seconds


def test_gradients_that_are_too_stale_are_counted_and_not_applied() -> None:
    free, bounded = (_learn("colocrl", controllers=2, stalest=stalest) for stalest in (None, 0))
    assert free.asynchrony is not None
    assert bounded.asynchrony is not None
    assert free.asynchrony.dropped == 0
    assert 0 < bounded.asynchrony.dropped < sum(bounded.asynchrony.staleness.values())
    assert not np.array_equal(free.samples, bounded.samples)


# A virtual clock makes asynchronous learning repeatable, also after an interruption.


def test_a_virtual_clock_gives_the_same_result_again() -> None:
    one, other = (_learn("colocrl", controllers=3) for _ in range(2))
    assert np.array_equal(one.samples, other.samples)
    assert one.asynchrony == other.asynchrony


@pytest.mark.parametrize("method", METHODS)
def test_controllers_go_on_as_if_they_were_never_interrupted(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "CHECKPOINT_SECONDS", 0.0)
    whole = _learn(method, samples=96, controllers=3, study=tmp_path / "whole")

    class Killed(Exception):
        pass

    def kill(first: int, _: object) -> None:
        if first >= 60:
            raise Killed

    with pytest.raises(Killed):
        _learn(method, controllers=3, study=tmp_path / "killed", on_measured=kill)
    resumed = _learn(method, controllers=3, study=tmp_path / "killed")
    assert np.array_equal(resumed.samples, whole.samples)
    assert resumed.asynchrony == whole.asynchrony
    placements = (list(Study.read(tmp_path / name).placements()) for name in ("whole", "killed"))
    assert np.array_equal(*placements)


# Options of asynchrony are refused where they have no meaning.


def test_methods_of_one_controller_are_refused() -> None:
    with pytest.raises(
        SituateError,
        match=r"method 'post' has one, .*; those that learn asynchronously: colocrl, hierarchical",
    ):
        _learn("post", controllers=4)


@pytest.mark.parametrize("count", [0, -1, 1.5, "two"])
def test_no_number_of_controllers_is_refused(count: object) -> None:
    with pytest.raises(SituateError, match=r"^controllers: must be an integer of at least 1, got"):
        Learning(controllers=count)  # type: ignore[arg-type]


def test_more_controllers_than_samples_are_refused() -> None:
    with pytest.raises(
        SituateError, match=r"^controllers: 9 are more than the 8 samples that they share: ask for"
    ):
        _learn("colocrl", samples=8, controllers=9)
    assert len(_learn("colocrl", samples=8, controllers=8).samples) == 8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clock": "wall"}, "clock: is that of several controllers: give controllers too"),
        ({"stalest": 1}, "stalest: is that of several controllers: give controllers too"),
        ({"stalest": -1, "controllers": 2}, "stalest: must not be negative, got -1"),
        ({"clock": "sun", "controllers": 2}, "clock: must be a VirtualClock or 'wall', got 'sun'"),
        ({"clock": "wall", "controllers": 2}, "clock: by the wall clock workers measure: give wor"),
    ],
)
def test_what_says_nothing_of_asynchrony_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SituateError, match=f"^{message}"):
        Learning(**given)


def test_a_clock_without_controllers_is_refused() -> None:
    with pytest.raises(SituateError, match=r"^clock: is that of several controllers: give"):
        Learning(clock=VirtualClock(2))


def test_the_time_is_until_the_last_placement_is_measured() -> None:
    """Two controllers draw once each, at 0 s."""
    result = _learn("colocrl", samples=2, controllers=2, clock=VirtualClock(1), noise=0.0)
    assert result.asynchrony is not None
    assert result.asynchrony.seconds == 11 * result.samples[np.isfinite(result.samples)].max()
