"""Recursive bisection by exchanges: shares of the seconds, few bytes across, units that stay."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from situate import _core
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.grouping.units import unit_graph
from situate.solvers.partitioners.bisection import Bisection
from situate.solvers.partitioners.mapping import Mapping
from tests.solvers.families import apart, devices, graph


def parts_of(problem: Problem, seed: int = 0) -> list[int]:
    """The part of each unit."""
    mapping = Mapping.onto(problem, accelerators(problem))
    part = Bisection(mapping).parts(np.random.default_rng(seed))
    return [int(p) for p in part]


def bytes_across(problem: Problem, side: list[int]) -> int:
    """Bytes of the tensors that cross, once for each unit that reads them."""
    return sum(
        tensor.size
        for tensor in problem.graph.tensors
        for reader in tensor.consumers
        if side[problem.unit[tensor.producer]] != side[problem.unit[reader]]
    )


# Parts have their share of the seconds.
@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_equal_devices_get_equal_parts(count: int) -> None:
    problem = Problem(apart(12 * count), devices(*[1] * count))
    assert np.bincount(parts_of(problem), minlength=count).tolist() == [12] * count


def test_a_fast_device_gets_more() -> None:
    problem = Problem(apart(40), devices(2, 2, 1))
    sizes = np.bincount(parts_of(problem), minlength=3).tolist()
    assert sizes == sorted(sizes)
    assert sizes[2] == pytest.approx(20, abs=2)


# No exchange of two units, and no move of one within balance, would cut fewer bytes.
@pytest.mark.parametrize("seed", range(10))
def test_a_bisection_is_a_local_optimum(seed: int) -> None:
    draw = np.random.default_rng(seed)
    edges = [(i, j) for i, j in product(range(14), repeat=2) if i < j and draw.random() < 0.3]
    problem = Problem(graph(14, edges, size=3), devices(1, 1))
    side = parts_of(problem, seed)
    least = bytes_across(problem, side)
    for first, second in product(range(len(side)), repeat=2):
        if side[first] == 0 and side[second] == 1:
            side[first], side[second] = 1, 0
            assert bytes_across(problem, side) >= least
            side[first], side[second] = 0, 1


@pytest.mark.parametrize("units", [200, 2000])
def test_many_units_of_equal_gains_are_kept_apart(units: int) -> None:
    """Pairs that exchange one byte each: the order of equal gains spans many blocks of the list."""
    tensors = tuple(Tensor(f"t{j}", j, 1, (j + 1,)) for j in range(0, units, 2))
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(units))
    problem = Problem(Graph("pairs", ops, tensors), devices(1, 1))
    side = parts_of(problem)
    assert bytes_across(problem, side) <= 1
    assert abs(sum(side) - units / 2) <= 0.03 * units


# The core's bisection.
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"side": np.full(3, -1, np.int8)}, "a side and a place"),
        ({"side": np.full(4, 3, np.int8)}, "sides are -1 to 2"),
        ({"order": np.array([0, 1, 2, 2])}, "names every unit once"),
        ({"order": np.array([0, 1, 2, 4])}, "names every unit once"),
        ({"share": 1.5}, "a share is 0 to 1"),
        ({"share": np.nan}, "a share is 0 to 1"),
    ],
)
def test_the_core_refuses_what_is_no_bisection(changes: dict[str, object], message: str) -> None:
    given = {"side": np.full(4, -1, np.int8), "order": np.arange(4), "share": 0.5} | changes
    four = Problem(apart(4), devices(1, 1))
    with pytest.raises(ValueError, match=message):
        _core.partition.bisect(unit_graph(four).in_core(four), **given)  # type: ignore[arg-type]


def test_units_left_out_and_fixed_ones_stay() -> None:
    side = np.array([2, 1, 0, -1, -1, 2], np.int8)
    problem = Problem(apart(6), devices(1, 1))
    result = _core.partition.bisect(
        unit_graph(problem).in_core(problem), side=side, order=np.arange(6), share=0.5
    )
    assert result[[0, 1, 2, 5]].tolist() == [2, 1, 0, 2]
    assert sorted(result[[3, 4]].tolist()) == [0, 1]
