"""Orders of trees that need the least memory."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec import structs

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.tree_order import is_tree, tree_order
from situate.simulation.decoding import decode
from situate.zoo import load
from tests.solvers.exhaustive import optimum
from tests.solvers.families import apart, chain, devices, fork, layered


def tree(n: int, seed: int, reach: int = 3) -> Graph:
    """Ops of which each but some is read by one a few places behind it, some in several tensors,
    some with workspaces, resident tensors or outputs."""
    draw = np.random.default_rng(seed)
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, workspace=int(draw.integers(0, 9)), persistent=9)
        for j in range(n)
    )
    tensors = []
    for j in range(n - 1):
        reader = min(n - 1, j + 1 + int(draw.integers(0, reach)))
        size = int(draw.integers(0, 20))
        kind = draw.random()
        tensors.append(
            Tensor(f"t{j}", j, min(size, 9), (reader,), resident=True)
            if kind < 0.1
            else Tensor(f"t{j}", j, size, () if kind < 0.2 else (reader,), output=kind > 0.9)
        )
        if draw.random() < 0.2:
            tensors.append(Tensor(f"u{j}", j, size, tensors[-1].consumers))
    return Graph("tree", ops, tuple(tensors))


def alone(small: Graph, rules: str = "situate") -> Problem:
    return Problem(small, devices(1), "memory", rules)  # type: ignore[arg-type]


def peak(problem: Problem) -> int:
    """Bytes in use by the order, beside those that ops hold throughout."""
    order = tree_order(problem).order
    schedule = decode(problem, np.zeros(problem.n, np.int32), order, "serial")
    schedule.verify(problem)
    return int(schedule.peak[0]) - int(problem.persistent.sum())


@pytest.mark.parametrize("seed", range(60))
def test_no_order_of_a_tree_needs_less(seed: int) -> None:
    problem = alone(tree(4 + seed % 4, seed), ("situate", "regal")[seed % 2])
    assert is_tree(problem)
    assert tree_order(problem).bytes == peak(problem)
    assert peak(problem) + problem.persistent.sum() == optimum(problem)


@pytest.mark.parametrize("seed", range(5))
def test_a_large_tree_needs_what_is_said(seed: int) -> None:
    problem = alone(tree(500, seed, reach=2 + 10 * seed))
    assert tree_order(problem).bytes == peak(problem)


def test_the_part_that_falls_most_goes_first() -> None:
    """Both parts up to where they hold one byte, then both to the end: depth first five bytes of
    the first wait beside ten of the second."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(7))
    sizes, readers = (10, 1, 5, 10, 1, 5), (1, 2, 6, 4, 5, 6)
    tensors = (Tensor(f"t{j}", j, s, (readers[j],)) for j, s in enumerate(sizes))
    problem = alone(Graph("two parts", ops, tuple(tensors)))
    assert set(tree_order(problem).order[:4].tolist()) == {0, 1, 3, 4}
    assert peak(problem) == 12


@pytest.mark.parametrize("seed", range(5))
def test_every_graph_has_such_an_order(seed: int) -> None:
    problem = alone(layered(6, 5, seed))
    order = tree_order(problem).order
    assert not is_tree(problem)
    assert (np.sort(order) == np.arange(problem.n)).all()


def test_what_is_a_tree() -> None:
    assert is_tree(alone(chain(4)))
    assert is_tree(alone(apart(4)))
    assert not is_tree(alone(fork(4)))
    assert not is_tree(alone(dataclasses.replace(chain(4), control=((0, 3),))))


def test_an_unrolled_networks_weights_get_their_gradients_one_step_at_a_time() -> None:
    """Depth first the sum of all steps' gradients comes when all are there."""
    equal = Cluster.preset("a100-pcie-4")
    device = structs.replace(equal.devices[0], memory=None)
    problem = Problem(load("rnnlm"), dataclasses.replace(equal, devices=(device,), links=()))
    by_depth = decode(problem, np.zeros(problem.n, np.int32), problem.depth_first, "serial")
    assert peak(problem) + problem.persistent.sum() < 0.6 * by_depth.peak[0]
