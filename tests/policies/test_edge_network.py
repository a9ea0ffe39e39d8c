"""The graph network of edges and ops: the same in numpy and in PyTorch, of one size, and blind to
names."""

from __future__ import annotations

import numpy as np
import pytest

from situate.policies.edge_network import (
    EdgeGraph,
    EdgeShape,
    NumpyOperations,
    edge_graph,
)
from situate.policies.edge_network import logits as all_logits

torch = pytest.importorskip("torch")

from situate.solvers.evolutionary.regal.training.linkage import (  # noqa: E402
    TorchOperations,
    initial_parameters,
)

SHAPE = EdgeShape((5, 2), width=8, rounds=3, ops=True)


def parameters(seed: int = 0) -> dict[str, np.ndarray]:
    return {name: of.detach().numpy() for name, of in initial_parameters(SHAPE, seed).items()}


def random_graph(seed: int, n: int = 30, e: int = 60) -> EdgeGraph:
    draw = np.random.default_rng(seed)
    nodes, edges = (draw.normal(size=size).astype(np.float32) for size in ((n, 5), (e, 2)))
    source, target = draw.integers(n, size=(2, e))
    return edge_graph(nodes, edges, source, target)


def logits(graph: EdgeGraph, seed: int = 0) -> np.ndarray:
    """Of edges."""
    return all_logits(parameters(seed), graph, NumpyOperations())[0]


def op_logits(graph: EdgeGraph) -> np.ndarray:
    return all_logits(parameters(), graph, NumpyOperations())[1]


def of_torch(graph: EdgeGraph) -> EdgeGraph:
    return EdgeGraph(*(torch.from_numpy(getattr(graph, name)) for name in graph.__slots__))


# PyTorch trains the function that numpy computes.


@pytest.mark.parametrize("seed", range(5))
def test_numpy_and_pytorch_give_the_same_logits(seed: int) -> None:
    graph = random_graph(seed)
    scores = all_logits(parameters(seed), graph, NumpyOperations())
    with torch.no_grad():
        expected = all_logits(initial_parameters(SHAPE, seed), of_torch(graph), TorchOperations())
    for mine, of_tensors in zip(scores, expected, strict=True):
        assert mine == pytest.approx(of_tensors.numpy(), abs=1e-5)


def test_every_parameter_has_a_gradient() -> None:
    graph, parameters = random_graph(0), initial_parameters(SHAPE, 0)
    scores = all_logits(parameters, of_torch(graph), TorchOperations())
    torch.cat(scores).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in parameters.values())


def test_a_network_of_edges_alone_scores_no_ops() -> None:
    shape = EdgeShape((5, 2), width=8, rounds=3)
    parameters = {name: np.ones(size, np.float32) for name, size in shape.parameters().items()}
    assert all_logits(parameters, random_graph(0), NumpyOperations())[1] is None


# The logits belong to edges and ops: neither the numbers of nodes nor the order of edges matters.


def test_other_numbers_of_nodes_change_nothing() -> None:
    graph = random_graph(1)
    new = np.random.default_rng(2).permutation(len(graph.nodes))
    nodes = np.empty_like(graph.nodes)
    nodes[new] = graph.nodes
    renumbered = edge_graph(nodes, graph.edges, new[graph.source], new[graph.target])
    assert logits(renumbered) == pytest.approx(logits(graph), abs=1e-5)
    assert op_logits(renumbered)[new] == pytest.approx(op_logits(graph), abs=1e-5)


def test_another_order_of_edges_gives_the_same_logits_in_that_order() -> None:
    graph = random_graph(1)
    order = np.random.default_rng(2).permutation(len(graph.edges))
    ends = graph.source[order], graph.target[order]
    reordered = edge_graph(graph.nodes, graph.edges[order], *ends)
    assert logits(reordered) == pytest.approx(logits(graph)[order], abs=1e-5)


def test_graphs_side_by_side_do_not_see_one_another() -> None:
    one, other = random_graph(1), random_graph(2, n=7, e=9)
    n = len(one.nodes)
    both = edge_graph(
        np.concatenate([one.nodes, other.nodes]),
        np.concatenate([one.edges, other.edges]),
        np.concatenate([one.source, other.source + n]),
        np.concatenate([one.target, other.target + n]),
    )
    assert logits(both) == pytest.approx(np.concatenate([logits(one), logits(other)]), abs=1e-5)


# Messages reach as far as there are rounds, and representations stay of one size.


def test_a_score_depends_on_nodes_at_a_distance_of_the_rounds() -> None:
    n = 10
    nodes, edges = np.zeros((n, 5), np.float32), np.zeros((n - 1, 2), np.float32)
    ends = np.arange(n - 1), np.arange(1, n)
    before = logits(edge_graph(nodes, edges, *ends))
    nodes[-1] = 1
    changed = np.flatnonzero(logits(edge_graph(nodes, edges, *ends)) != before)
    # Edge i ends at node i + 1, which is n - 2 - i steps from the last one.
    assert changed.tolist() == [i for i in range(n - 1) if n - 2 - i <= SHAPE.rounds]


def test_nodes_of_a_thousand_edges_do_not_blow_up() -> None:
    n = 1001
    draw = np.random.default_rng(0)
    nodes, edges = (draw.normal(size=size).astype(np.float32) for size in ((n, 5), (n - 1, 2)))
    star = edge_graph(nodes, edges, np.zeros(n - 1, np.int64), np.arange(1, n))
    assert np.abs(logits(star)).max() < 10


def test_a_graph_without_edges_has_no_logits() -> None:
    none = np.zeros(0, np.int64)
    nodes, edges = np.zeros((3, 5), np.float32), np.zeros((0, 2), np.float32)
    assert logits(edge_graph(nodes, edges, none, none)).shape == (0,)
