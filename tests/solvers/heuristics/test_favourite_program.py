"""The linear program of favourite children is that of the paper."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from situate.solvers.heuristics.favourite_program import FavouriteProgram
from tests.solvers.programs import needs_highs

pytestmark = needs_highs


def program(seconds: list[float], edges: list[tuple[int, int, float]]) -> FavouriteProgram:
    producer, consumer, transfer = (np.array(column) for column in zip(*edges, strict=True))
    return FavouriteProgram(
        np.array(seconds, np.float64),
        producer.astype(np.int64),
        consumer.astype(np.int64),
        transfer.astype(np.float64),
        np.ones(len(edges), np.bool_),
    )


def longest(given: FavouriteProgram, apart: np.ndarray) -> float:
    """The makespan of starts that these x allow, edges being in topological order."""
    start = np.zeros(len(given.seconds))
    for e in np.argsort(given.producer, kind="stable"):
        i, j = given.producer[e], given.consumer[e]
        start[j] = max(start[j], start[i] + given.seconds[i] + given.transfer[e] * apart[e])
    return float((start + given.seconds).max())


def drawn(seed: int) -> FavouriteProgram:
    rng = np.random.default_rng(seed)
    edges = [(i, j, float(rng.integers(1, 9))) for i in range(6) for j in range(i + 1, 6)]
    kept = [edge for edge in edges if rng.random() < 0.5] or edges[:1]
    return program(rng.integers(1, 9, 6).tolist(), kept)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_a_relaxation(seed: int) -> None:
    """No choice of favourites in whole numbers has a shorter makespan, and at most one edge of each
    op is nearer to 0 than to 1."""
    given = drawn(seed)
    x = given.apart(None)
    for ends in (given.producer, given.consumer):
        for op in range(6):
            mine = x[ends == op]
            assert mine.sum() >= len(mine) - 1 - 1e-6
            assert (mine < 0.5 - 1e-6).sum() <= 1
    edges = len(x)
    whole = [
        longest(given, np.array(choice))
        for choice in product((0, 1), repeat=min(edges, 10))
        if edges <= 10
        and all(
            sum(1 - c for c, end in zip(choice, ends, strict=True) if end == op) <= 1
            for ends in (given.producer, given.consumer)
            for op in range(6)
        )
    ]
    assert longest(given, x) <= min(whole, default=np.inf) + 1e-6


def test_of_two_equal_children_one_or_none_is_close() -> None:
    x = program([1, 1, 1], [(0, 1, 4), (0, 2, 4)]).apart(None)
    assert x.sum() == pytest.approx(1)


def test_edges_that_are_not_free_cost_nothing_and_take_no_favour() -> None:
    given = program([1, 1, 1], [(0, 1, 0), (0, 2, 4)])
    given.free[0] = False
    assert given.apart(None).tolist() == [0, 0]


def test_without_time_all_are_apart() -> None:
    assert drawn(1).apart(0.0).min() == 1


@pytest.mark.parametrize("seconds", [1e-300, 1e290])
def test_numbers_of_any_size_are_taken(seconds: float) -> None:
    x = program([seconds] * 3, [(0, 1, 4 * seconds), (0, 2, seconds / 1e15)]).apart(None)
    assert x[0] == pytest.approx(0)


def test_nothing_is_written_to_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    drawn(2).apart(None)
    assert capfd.readouterr() == ("", "")
