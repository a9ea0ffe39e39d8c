"""Memory in use, swept from a schedule's times, equals the oracle's."""

from __future__ import annotations

import numpy as np
import pytest

from situate.schedule.memory import Lives, lives, peaks, persistent_bytes, seconds, sweep
from tests.oracle.problems import random_decision, random_problem
from tests.oracle.simulator import simulate


def _sweep(*rows: tuple[int, float, float, int]) -> list[tuple[int, float, int]]:
    device, birth, death, size = (np.array(column) for column in zip(*rows, strict=True))
    changes = sweep(Lives(device, birth, death, size))
    return list(zip(*(column.tolist() for column in changes), strict=True))


def test_what_ends_goes_before_what_starts() -> None:
    assert _sweep((0, 0.0, 1.0, 5), (0, 1.0, 2.0, 7)) == [(0, 0, 5), (0, 1, 7), (0, 2, 0)]


def test_what_starts_and_ends_at_one_instant_takes_no_memory() -> None:
    assert _sweep((0, 1.0, 1.0, 5)) == []


def test_devices_are_apart() -> None:
    assert _sweep((1, 0.0, 1.0, 5), (0, 0.0, 1.0, 7)) == [
        (0, 0, 7),
        (0, 1, 0),
        (1, 0, 5),
        (1, 1, 0),
    ]


@pytest.mark.parametrize("decoder", ["eager", "serial"])
def test_peaks_equal_the_oracles(decoder: str) -> None:
    for seed in range(20_000, 20_200):
        problem = random_problem(seed)
        drawn = random_decision(problem, seed)
        schedule = simulate(problem, drawn.placement, drawn.priority, None, decoder)  # type: ignore[arg-type]
        assert peaks(schedule, problem).tolist() == schedule.peak.tolist(), seed


def test_all_is_given_back_in_the_end() -> None:
    for seed in range(50):
        problem = random_problem(seed)
        drawn = random_decision(problem, seed)
        schedule = simulate(problem, drawn.placement, drawn.priority)
        changes = sweep(lives(schedule, problem, seconds(schedule)))
        last = np.append(np.diff(changes.device) != 0, True)[: len(changes.use)]
        assert not changes.use[last].any()
        assert persistent_bytes(schedule, problem).sum() == problem.persistent.sum()
