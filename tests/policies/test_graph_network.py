"""The graph network against Eq. 1 of REGAL, edge by edge, and the sequence network."""

from __future__ import annotations

import dataclasses

import pytest

torch = pytest.importorskip("torch")

from situate.policies.graph_network import (  # noqa: E402
    GraphBatch,
    GraphNetwork,
    SequenceNetwork,
)
from situate.policies.shapes import GraphShape  # noqa: E402

SOURCE, TARGET = [0, 0, 0, 1, 3, 3], [1, 1, 2, 2, 4, 4]
"""A triangle with an edge twice, an edge twice, and node 5 alone."""


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def batch():
    return GraphBatch(
        torch.rand(6, 4, generator=seeded(1)),
        torch.rand(6, 3, generator=seeded(2)),
        torch.tensor(SOURCE),
        torch.tensor(TARGET),
        torch.tensor([0, 0, 0, 1, 1, 2]),
        torch.tensor([0, 1, 2, 0, 1, 0]),
        3,
    )


def first(of):
    """The first graph alone."""
    edges = of.edges[:4], of.source[:4], of.target[:4]
    return GraphBatch(of.nodes[:3], *edges, of.graph[:3], of.place[:3], 1)


def plainly(network, of):
    """Eq. 1 as it is written."""
    shape, nodes = network.shape, network.node(of.nodes)
    edges = network.edge(of.edges)
    for _ in range(shape.rounds):
        received = []
        for messages, ends in ((network.along, TARGET), (network.against, SOURCE)):
            inbox = [[torch.zeros(shape.width)] for _ in nodes]
            for e, (s, t) in enumerate(zip(SOURCE, TARGET, strict=True)):
                inbox[ends[e]].append(messages(torch.cat([nodes[s], nodes[t], edges[e]])))
            counts = [max(1, len(box) - 1) if shape.aggregation == "mean" else 1 for box in inbox]
            received.append(torch.stack([sum(b) / c for b, c in zip(inbox, counts, strict=True)]))
        total = received[0] + received[1]
        if shape.update == "gru":
            nodes = network.update(total, nodes)
        else:
            networks = network.update(torch.cat([nodes, total], dim=1))
            nodes = nodes + networks if shape.update == "residual" else networks
    return nodes


def trained(rounds, update="residual", aggregation="sum"):
    """A network whose every layer has an effect."""
    networks = GraphNetwork((4, 3), GraphShape(8, rounds, update, aggregation), seeded())
    for parameter in networks.update.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=seeded(3))
    return networks


# Message passing on three small graphs in one batch.
@pytest.mark.parametrize("update", ["plain", "residual", "gru"])
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_it_is_the_papers_equation(update, aggregation, rounds):
    network = trained(rounds, update, aggregation)
    torch.testing.assert_close(network(batch()), plainly(network, batch()))


def test_messages_go_both_ways_and_no_further_than_there_are_rounds():
    network = trained(1)
    before, changed = batch(), batch()
    changed.nodes[1] += 1
    moved = (network(before) != network(changed)).any(dim=1)
    assert moved.tolist() == [True, True, True, False, False, False]


def test_graphs_side_by_side_do_not_touch():
    network = trained(5)
    of = batch()
    torch.testing.assert_close(network(of)[:3], network(first(of)))


def test_nodes_of_a_thousand_edges_begin_as_small_as_any():
    star = GraphBatch(
        torch.rand(1001, 4, generator=seeded(1)),
        torch.rand(1000, 3, generator=seeded(2)),
        torch.zeros(1000, dtype=torch.long),
        torch.arange(1, 1001),
        torch.zeros(1001, dtype=torch.long),
        torch.arange(1001),
        1,
    )
    for update in ("residual", "gru"):
        assert GraphNetwork((4, 3), GraphShape(update=update), seeded())(star).abs().max() < 2


# Initial parameters and sums by graph.
def test_the_generator_decides_the_parameters():
    networks = [GraphNetwork((4, 3), GraphShape(8, update="gru"), seeded(s)) for s in (1, 1, 2)]
    first, same, other = (
        [p.tolist() for p in network_of_seed.parameters()] for network_of_seed in networks
    )
    assert first == same
    assert first != other


def test_sums_are_over_the_nodes_of_each_graph():
    assert batch().sums(torch.ones(6, 2)).tolist() == [[3, 3], [2, 2], [1, 1]]


PLACE = torch.tensor([2, 0, 1, 1, 0, 0])
"""Places of the nodes of three graphs, of three nodes, two and one."""


def network():
    return SequenceNetwork(4, GraphShape(8, kind="sequence"), seeded())


# The sequence network against an LSTM on each graph alone.
def test_each_graph_is_read_in_its_order():
    of = dataclasses.replace(batch(), place=PLACE)
    representations, begin = network()(of), 0
    for size in (3, 2, 1):
        nodes, place = (part[begin : begin + size] for part in (of.nodes, of.place))
        hidden_states, _ = network().lstm(nodes[place.argsort()])
        torch.testing.assert_close(
            representations[begin : begin + size], network().last(hidden_states)[place]
        )
        begin += size


def test_graphs_may_come_in_any_order_of_size():
    of = dataclasses.replace(
        batch(), graph=torch.tensor([0, 1, 1, 2, 2, 2]), place=torch.tensor([0, 0, 1, 0, 1, 2])
    )
    hidden_states, _ = network().lstm(of.nodes[3:])
    torch.testing.assert_close(network()(of)[3:], network().last(hidden_states))


def test_the_generator_decides_the_parameters_of_a_sequence_network():
    one, same = (list(network().parameters()) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
