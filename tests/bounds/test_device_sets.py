"""Sets of devices that units may run on."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec import structs

from situate.bounds.device_sets import DeviceSets
from situate.data.problem import Problem
from tests.oracle.problems import random_problem
from tests.solvers.families import apart, devices


def test_the_set_of_most_units_comes_first() -> None:
    small = apart(5)
    pins = ("d1", None, "d1", "d1", None)
    ops = tuple(structs.replace(op, device=pin) for op, pin in zip(small.ops, pins, strict=True))
    found = DeviceSets.of(Problem(dataclasses.replace(small, ops=ops), devices(1, 1)))
    assert found.sets.tolist() == [[False, True], [True, True]]
    assert found.of_unit.tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_every_unit_has_its_own(seed: int) -> None:
    problem = random_problem(seed)
    found = DeviceSets.of(problem)
    assert (found.sets[found.of_unit] == problem.allowed).all()
    assert len(np.unique(found.sets, axis=0)) == len(found.sets)
