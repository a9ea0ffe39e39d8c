"""Graphs and machines in Scotch's own words."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.grouping.bisection import LARGEST_SUM
from situate.solvers.partitioners.mapping import Mapping
from situate.solvers.partitioners.scotch.files import FARTHEST, distances, source_file, target_file
from tests.solvers.families import apart, chain, devices, layered


def _onto_all(graph: Graph, cluster: Cluster) -> Mapping:
    return Mapping.onto(Problem(graph, cluster), list(range(len(cluster.devices))))


def _linked(bandwidth: float, latency: float = 0.0) -> Cluster:
    """d0 and d1 a byte a second apart, d2 farther."""
    return Cluster(
        "c",
        tuple(Device(f"d{i}", "x1") for i in range(3)),
        (Link("*", "*", 1.0), Link("*", "d2", bandwidth, latency)),
    )


def test_a_source_file_holds_loads_and_edges() -> None:
    """Vertex loads 1 : 3 : 0, edges of weight 2 : 1; each line is load, degree, weight and end."""
    ops = tuple(Op(f"op{j}", seconds={"*": s}) for j, s in enumerate((1.0, 3.0, 0.0)))
    tensors = (Tensor("a", 0, 20, (1,)), Tensor("b", 1, 10, (2,)))
    header, size, flags, *rows = source_file(
        _onto_all(Graph("g", ops, tensors), devices(1, 1))
    ).splitlines()
    assert (header, size, flags) == ("0", "3 4", "0 011")
    first, second, third = ([int(word) for word in row.split()] for row in rows)
    assert second[0] / first[0] == pytest.approx(3, rel=1e-6)
    assert third[0] == 1
    assert [first[1], second[1], third[1]] == [1, 2, 1]
    assert [first[3], second[3], second[5], third[3]] == [1, 0, 2, 1]
    assert first[2] == second[2] == pytest.approx(2 * third[2], rel=1e-5)
    assert second[4] == third[2]


def test_no_sum_of_a_source_file_overflows() -> None:
    rows = source_file(_onto_all(layered(9, 9, 1, size=2**53), devices(1, 1))).splitlines()[3:]
    numbers = [[int(word) for word in row.split()] for row in rows]
    assert sum(row[0] for row in numbers) <= LARGEST_SUM
    assert sum(sum(row[2::2]) for row in numbers) * FARTHEST <= LARGEST_SUM
    assert min(min(row[2::2], default=1) for row in numbers) >= 1


def test_a_target_file_holds_speeds_a_tree_and_distances() -> None:
    fast = _onto_all(chain(3), devices(1, 2, 1))
    assert target_file(fast).splitlines() == [
        "deco",
        "0 3 5",
        "0 1000 4",
        "1 500 5",
        "2 1000 3",
        "1",
        "1 1",
    ]


@pytest.mark.parametrize("count", [1, 2, 5, 9, 17])
def test_the_tree_has_every_device_as_one_leaf(count: int) -> None:
    _, header, *rows = target_file(_onto_all(chain(3), devices(*[1] * count))).splitlines()
    leaves = {int(row.split()[2]) for row in rows[:count]}
    assert len(leaves) == count
    assert header == f"0 {count} {max(leaves)}"
    inner = {leaf >> up for leaf in leaves for up in range(1, leaf.bit_length())}
    assert not inner & leaves
    assert inner | leaves == {1} | {2 * i + side for i in inner for side in (0, 1)}


def test_distances_are_the_seconds_of_a_mean_tensor_there_and_back() -> None:
    """Ten bytes: 10 s there and 10 s back, or 40 s each way."""
    near = distances(_onto_all(chain(3, size=10), _linked(0.25)))
    assert near.tolist() == [[1, 1, 4], [1, 1, 4], [4, 4, 1]]
    late = distances(_onto_all(chain(3, size=10), _linked(1.0, latency=10.0)))
    assert late.tolist() == [[1, 1, 2], [1, 1, 2], [2, 2, 1]]


def test_distances_end_somewhere() -> None:
    assert distances(_onto_all(chain(3), _linked(1e-9))).max() == FARTHEST
    assert distances(_onto_all(chain(3), _linked(1e-200, latency=1e200))).max() == FARTHEST
    assert distances(_onto_all(chain(3), _linked(np.inf))).tolist() == [[1] * 3] * 3


def test_without_bytes_or_links_all_are_as_near() -> None:
    assert distances(_onto_all(apart(2), devices(1, 1))).tolist() == [[1, 1], [1, 1]]
    alone = Graph("g", (Op("a", seconds={"*": 1.0}),))
    assert distances(_onto_all(alone, Cluster.identical(2))).tolist() == [[1, 1], [1, 1]]
