from __future__ import annotations

import numpy as np
import pytest

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.grouping import group, heavy_edge
from situate.grouping.units import unit_graph
from tests.grouping.cases import problems
from tests.solvers import families

CASES = problems()


def seconds(problem: Problem, count: int) -> np.ndarray:
    """Seconds of each group."""
    labels = np.unique(heavy_edge.labels(problem, count), return_inverse=True)[1]
    return np.bincount(labels, unit_graph(problem).seconds)


# The number of groups.
@pytest.mark.parametrize("count", [1, 2, 5, 7])
@pytest.mark.parametrize("case", ["layered", "apart", "fork", "wide", "weightless", "controlled"])
def test_there_are_as_many_groups_as_asked_for(case, count):
    assert len(group(CASES[case], "heavy-edge", count)) == min(count, CASES[case].units)


@pytest.mark.parametrize("count", [8, 64, 200])
@pytest.mark.parametrize("network", ["resnet50", "rnnlm"])
def test_a_network_has_as_many_groups_as_asked_for(network, count):
    problem = Problem(zoo.load(network), Cluster.preset("k80-4"))
    assert len(group(problem, "heavy-edge", count)) == count


# Which units come together: many bytes, few seconds.
def test_what_exchanges_most_bytes_is_together():
    """A ring of four: the two heavy edges are opposite."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(4))
    sizes = {(0, 1): 9, (1, 2): 5, (2, 3): 9, (0, 3): 5}
    tensors = (Tensor(f"t{a}{b}", a, size, (b,)) for (a, b), size in sizes.items())
    problem = Problem(Graph("ring", ops, tuple(tensors)), families.devices(1, 1))
    assert group(problem, "heavy-edge", 2).of_op.tolist() == [0, 0, 1, 1]


def test_groups_of_equal_ops_are_balanced():
    problem = Problem(families.chain(256), families.devices(1, 1))
    assert seconds(problem, 16).max() <= heavy_edge.MAX_RELATIVE_SECONDS * 16
    assert seconds(problem, 16).sum() == 256


def test_no_group_is_much_longer_than_the_average_or_the_longest_op():
    problem = Problem(families.layered(20, 20, 3), families.devices(1, 1))
    longest = max(float(problem.seconds.max()), seconds(problem, 20).mean())
    assert seconds(problem, 20).max() <= heavy_edge.MAX_RELATIVE_SECONDS**2 * longest


def test_what_a_hub_exchanges_most_with_joins_it():
    """Each that joins makes the edges to all others lighter."""
    readers = 2000
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(readers + 1))
    sizes = np.random.default_rng(0).permutation(readers) + 1
    tensors = (Tensor(f"t{j}", j, int(size), (0,)) for j, size in enumerate(sizes, 1))
    problem = Problem(Graph("hub", ops, tuple(tensors)), families.devices(1, 1))
    labels = heavy_edge.labels(problem, 1000)
    joined = sizes[labels[1:] == labels[0]]
    assert sorted(joined) == list(range(1000, readers + 1))


def test_a_heavy_edge_outweighs_many_light_ones():
    """A cut by edges at random would send about seven eighths of the bytes."""
    rng = np.random.default_rng(0)
    graph = families.layered(30, 8, 1)
    tensors = tuple(
        Tensor(t.name, t.producer, int(2 ** rng.integers(20)), t.consumers) for t in graph.tensors
    )
    problem = Problem(Graph("skewed", graph.ops, tensors), families.devices(1, 1))
    units, labels = unit_graph(problem), heavy_edge.labels(problem, 8)
    rows = np.repeat(np.arange(len(units)), np.diff(units.start))
    cut = units.bytes[labels[rows] != labels[units.neighbour]].sum()
    assert cut < 0.25 * units.bytes.sum()


# Devices and memory limit the groups.
def test_units_that_share_no_device_are_more_groups_than_asked_for():
    assert len(group(CASES["pinned"], "heavy-edge", 1)) == 2


def test_groups_fit_a_device():
    problem = families.problem("tight")
    assert len(group(problem, "heavy-edge", 1)) == 3
    assert np.bincount(heavy_edge.labels(problem, 1), problem.persistent).max() <= 30


def test_ops_without_edges_come_together_by_their_seconds():
    problem = Problem(families.apart(64, seconds=[1.0, 3.0] * 32), families.devices(1, 1))
    assert seconds(problem, 16).max() <= 2 * seconds(problem, 16).mean()


# Several partitions at once.
def test_several_partitions_of_few_units_are_those_that_each_would_be():
    problem = CASES["layered"]
    result = heavy_edge.partitions(problem, (7, 5, 2))
    for count, labels in zip((7, 5, 2), result, strict=True):
        np.testing.assert_array_equal(labels, heavy_edge.labels(problem, count))


def test_of_many_units_they_are_made_of_one_fine_partition():
    problem = Problem(zoo.load("rnnlm"), Cluster.preset("k80-4"))
    result = heavy_edge.partitions(problem, (12, 6))
    assert [len(np.unique(labels)) for labels in result] == [12, 6]
    fine = heavy_edge.labels(problem, heavy_edge.FINE_GROUPS_FACTOR * 12)
    for labels in result:
        assert (
            len(np.unique(np.stack((fine, labels)), axis=1).T) == heavy_edge.FINE_GROUPS_FACTOR * 12
        )


def test_no_partition_is_none():
    assert heavy_edge.partitions(CASES["layered"], ()).shape == (0, CASES["layered"].units)
