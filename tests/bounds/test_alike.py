"""Rows that are alike."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec import structs

from situate.bounds import alike
from situate.bounds.alike import DeviceSets, distinct, equal_rows
from situate.data.problem import Problem
from tests.oracle.problems import random_problem
from tests.solvers.families import apart, devices


def test_sets_of_rows_come_in_the_order_of_the_rows() -> None:
    first, which = equal_rows(np.array([[3, 1], [2, 1], [3, 1]]))
    assert first.tolist() == [0, 1]
    assert which.tolist() == [0, 1, 0]


def test_many_equal_rows_of_any_type_are_one_set() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (500, 11))
    for rows in (bits.astype(np.bool_), bits.astype(np.float64), bits.astype(np.int32)):
        first, which = equal_rows(rows)
        assert np.array_equal(rows[first][which], rows)
        assert (np.diff(first) > 0).all()
        assert len(first) == len({tuple(row) for row in rows.tolist()})


def test_rows_with_one_hash_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "_hashes", lambda rows: np.zeros(len(rows), np.uint64))
    first, which = equal_rows(np.arange(100).reshape(100, 1) // 2)
    assert first.tolist() == list(range(0, 100, 2))
    assert which.tolist() == [row // 2 for row in range(100)]


@pytest.mark.parametrize("shape", [(5, 300), (300, 2), (1, 4)])
def test_distinct_rows_are_those_of_numpy(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(0).integers(-1, 2, shape) * 0.5
    expected, which = np.unique(rows, axis=0, return_inverse=True)
    assert np.array_equal(distinct(rows)[0], expected)
    assert np.array_equal(distinct(rows)[1], which.ravel())


# Sets of devices that units may run on.
def test_the_set_of_most_units_comes_first() -> None:
    small = apart(5)
    pins = ("d1", None, "d1", "d1", None)
    ops = tuple(structs.replace(op, device=pin) for op, pin in zip(small.ops, pins, strict=True))
    result = DeviceSets.of(Problem(dataclasses.replace(small, ops=ops), devices(1, 1)))
    assert result.sets.tolist() == [[False, True], [True, True]]
    assert result.of_unit.tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_every_unit_has_its_own(seed: int) -> None:
    problem = random_problem(seed)
    result = DeviceSets.of(problem)
    assert (result.sets[result.of_unit] == problem.allowed).all()
    assert len(np.unique(result.sets, axis=0)) == len(result.sets)
