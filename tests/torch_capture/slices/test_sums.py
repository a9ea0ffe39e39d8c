"""Sums of gradients: slice by slice or in pairs, then replica by replica."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import fx  # noqa: E402

from situate.data.slices import Sums  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.torch_capture.names import NAME, REPLICA  # noqa: E402
from situate.torch_capture.slices.sums import GradientSums  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402


def sums(
    replica: tuple[int, ...], order_of_slices: tuple[int, ...], order: Sums = "chain"
) -> tuple[fx.Graph, str]:
    """The graph after the slices of these numbers have given gradients of `w`, and its total as a
    sum of them."""
    graph = fx.Graph()
    gradient_sums = GradientSums(graph, replica, order)
    for s in range(len(replica)):
        node = graph.placeholder(f"g{s}")
        node.meta["val"] = torch.zeros(2)
        if s in order_of_slices:
            gradient_sums.add("w", "described", s, node)
    ((description, total),) = gradient_sums.totals()
    assert description == "described"
    return graph, text(total)


def text(node: fx.Node) -> str:
    return node.name if node.op == "placeholder" else f"({text(node.args[0])}+{text(node.args[1])})"


# Each order of slices gives one order of additions, in a chain and in a tree.
@pytest.mark.parametrize(
    ("replica", "order_of_slices", "total"),
    [
        ((0, 0, 0), (0, 1, 2), "((g0+g1)+g2)"),
        ((0, 1, 0, 1), (0, 1, 2, 3), "((g0+g2)+(g1+g3))"),
        ((0, 1, 2), (0, 1, 2), "((g0+g1)+g2)"),
        ((0, 1, 1, 0), (0, 1, 2, 3), "((g0+g3)+(g1+g2))"),
        ((0, 1, 0), (1,), "g1"),
        ((0, 1, 0), (0, 1), "(g0+g1)"),
    ],
)
def test_the_order_of_additions_is_that_of_slices_and_of_replicas(replica, order_of_slices, total):
    assert sums(replica, order_of_slices)[1] == total


@pytest.mark.parametrize(
    ("replica", "order_of_slices", "total"),
    [
        ((0,) * 2, range(2), "(g0+g1)"),
        ((0,) * 3, range(3), "((g0+g1)+g2)"),
        ((0,) * 4, range(4), "((g0+g1)+(g2+g3))"),
        ((0,) * 7, range(7), "(((g0+g1)+(g2+g3))+((g4+g5)+g6))"),
        ((0,) * 5, (0, 2, 3, 4), "((g0+g2)+(g3+g4))"),
        ((0, 1, 2, 3), range(4), "((g0+g1)+(g2+g3))"),
        ((0, 1) * 3, range(6), "(((g0+g2)+g4)+((g1+g3)+g5))"),
        ((0, 1, 2, 3), (0, 2, 3), "((g0+g2)+g3)"),
    ],
)
def test_a_tree_adds_up_pairs_of_neighbours(replica, order_of_slices, total):
    assert sums(replica, tuple(order_of_slices), "tree")[1] == total


def test_a_sum_is_called_by_its_replica_and_comes_as_soon_as_it_can():
    graph, _ = sums((0, 1, 0, 1), (0, 1, 2, 3))
    adds = [node for node in graph.nodes if node.op == "call_function"]
    assert [node.meta.get(REPLICA) for node in adds] == [0, 1, None]
    assert {node.meta[NAME] for node in adds} == {"w/add"}
    names = [node.name for node in graph.nodes]
    assert names.index(adds[0].name) < names.index("g3")


def test_a_pair_is_added_up_as_soon_as_it_is_there():
    graph, _ = sums((0,) * 4, (0, 1, 2, 3), "tree")
    names = [node.name for node in graph.nodes]
    assert names == ["g0", "g1", "add_tensor", "g2", "g3", "add_tensor_1", "add_tensor_2"]


def test_an_order_that_is_not_chosen_yet_is_refused():
    with pytest.raises(SituateError, match="plan, compare and explain choose the order"):
        captured(torch.nn.functional.mse_loss, sums="auto")
