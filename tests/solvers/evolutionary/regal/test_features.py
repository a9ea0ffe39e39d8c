"""The features of ops and edges against the paper's list (A.2)."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.brkga import BRKGA, evolution
from situate.solvers.evolutionary.regal.features import (
    EDGE_FEATURES,
    encoding,
    expected,
    node_features,
    op_bytes,
)
from tests.solvers.families import families, problem

GRAPH = Graph(
    "three",
    (
        Op("a", seconds={"*": 2.0}, workspace=6),
        Op("b", seconds={"*": 8.0}),
        Op("c", seconds={"*": 4.0}, persistent=5),
    ),
    (Tensor("x", 0, 10, (1, 2)), Tensor("y", 1, 4, (2,))),
    ((0, 2),),
)
"""x is read by b and c, y by c, which waits for a as well."""

EXPECTED = np.float32([[1, 0, 0], [0.5, 0.5, 0.25], [0, 1, 1]])


def of(objective: str = "time") -> Problem:
    return Problem(GRAPH, Cluster.identical(2), objective, "regal")  # type: ignore[arg-type]


# The features of ops and edges are those of A.2, and three of our own.


def test_there_are_eleven_features_of_an_op_for_time_on_two_devices() -> None:
    assert node_features("time", 2, places=False) == 11
    assert node_features("memory", 2, places=False) == 7
    assert node_features("time", 4, places=True) == 16


def test_sizes_and_times_are_shares_of_the_largest() -> None:
    """Bytes in, out and beside; most bytes; times before, after and own; longest; BRKGA's."""
    result = encoding(of(), EXPECTED, False).nodes
    wanted = [
        [0, 10 / 14, 6 / 14, 0, 0, 12 / 8, 2 / 8, 0, 1, 0, 0],
        [10 / 14, 4 / 14, 0, 0, 2 / 8, 4 / 8, 1, 1, 0.5, 0.5, 0.25],
        [14 / 14, 0, 5 / 14, 1, 10 / 8, 0, 4 / 8, 0, 0, 1, 1],
    ]
    np.testing.assert_allclose(result, np.float32(wanted))
    assert result.dtype == np.float32


def test_places_are_longest_paths_and_a_depth_first_order() -> None:
    """a, b and c are a path of 14; b and c wait for a."""
    result = encoding(of(), EXPECTED, True).nodes
    wanted = [[0, 12 / 14, 0], [2 / 14, 4 / 14, 0.5], [10 / 14, 0, 1]]
    np.testing.assert_allclose(result[:, 8:11], np.float32(wanted))


def test_memory_has_no_times() -> None:
    time, memory = (
        encoding(of(), EXPECTED, False).nodes,
        encoding(of("memory"), EXPECTED, False).nodes,
    )
    np.testing.assert_array_equal(memory, time[:, [0, 1, 2, 3, 8, 9, 10]])


def test_each_producer_tensor_and_consumer_is_an_edge() -> None:
    result = encoding(of(), EXPECTED, False)
    assert result.source.tolist() == [0, 0, 1, 0]
    assert result.target.tolist() == [1, 2, 2, 2]
    wanted = [[10 / 14, 0, 0], [10 / 14, 0, 0], [4 / 14, 0, 0.5], [0, 1, 1]]
    np.testing.assert_allclose(result.edges, np.float32(wanted))


def test_bytes_of_ops() -> None:
    assert op_bytes(of()).tolist() == [[0, 10, 6], [10, 4, 0], [14, 0, 5]]


# No problem makes a feature infinite.


@pytest.mark.parametrize("objective", ["time", "memory"])
@pytest.mark.parametrize("family", families())
def test_features_are_finite_whatever_the_problem(family: str, objective: str) -> None:
    of = problem(family, objective, "regal")
    result = encoding(of, np.zeros((of.n, of.d + 1), np.float32), True)
    assert result.nodes.shape == (of.n, node_features(objective, of.d, True))  # type: ignore[arg-type]
    assert result.edges.shape == (len(of.consumers), EDGE_FEATURES)
    assert np.isfinite(result.nodes).all()
    assert np.isfinite(result.edges).all()


def test_ops_without_time_or_bytes_have_features_too() -> None:
    nothing = replace(GRAPH, ops=tuple(Op(name, seconds={"*": 0.0}) for name in "abc"), tensors=())
    of = Problem(nothing, Cluster.identical(2), rules="regal")
    assert np.isfinite(encoding(of, EXPECTED, True).nodes).all()


def plainly(of: Problem, keys: np.ndarray) -> np.ndarray:
    """Means over chromosomes (k, keys), one by one."""
    total = np.zeros((of.n, of.d + 1))
    before: list[set[int]] = [set() for _ in range(of.n)]
    for a, b in of.graph.edges():
        before[b].add(a)
    for row in keys:
        affinity = row[: of.n * of.d].reshape(of.n, of.d)
        first = [int((of.unit == of.unit[op]).argmax()) for op in range(of.n)]
        for op in range(of.n):
            allowed = np.where(of.allowed[of.unit[op]], affinity[first[op]], -1)
            total[op, allowed.argmax()] += 1
        priority = row[of.n * of.d : of.n * (of.d + 1)]
        order: list[int] = []
        remaining = set(range(of.n))
        while remaining:
            ready = [o for o in remaining if before[o].isdisjoint(remaining)]
            order.append(max(ready, key=lambda o: (priority[o], -o)))
            remaining.remove(order[-1])
        total[order, of.d] += np.arange(of.n) / max(1, of.n - 1)
    return total / len(keys)


# Features of the plain run are means over its population.


@pytest.mark.parametrize("family", families())
def test_expectations_are_means_over_the_population(family: str) -> None:
    of = problem(family, "time", "regal")
    population = evolution(Simulator(of), BRKGA["paper"], goal="time", seed=0)
    population.run(150, inf, 1)
    keys, _, _ = population.population()
    np.testing.assert_allclose(expected(population), plainly(of, keys), atol=1e-6)


def test_before_a_generation_nothing_is_expected() -> None:
    population = evolution(Simulator(of()), BRKGA["paper"], goal="time", seed=0)
    population.run(7, inf, 1)
    np.testing.assert_array_equal(expected(population), np.float32([[0.5, 0.5, 0.5]] * 3))
