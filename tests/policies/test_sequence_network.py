"""The recurrent network against an LSTM that reads one graph after the other."""

from __future__ import annotations

import dataclasses

import pytest

torch = pytest.importorskip("torch")

from situate.policies.graph_shape import GraphShape  # noqa: E402
from situate.policies.sequence_network import SequenceNetwork  # noqa: E402
from tests.policies.test_graph_network import batch, seeded  # noqa: E402

PLACE = torch.tensor([2, 0, 1, 1, 0, 0])
"""Places of the nodes of three graphs, of three nodes, two and one."""


def network():
    return SequenceNetwork(4, GraphShape(8, kind="sequence"), seeded())


def test_each_graph_is_read_in_its_order():
    of = dataclasses.replace(batch(), place=PLACE)
    found, begin = network()(of), 0
    for size in (3, 2, 1):
        nodes, place = (part[begin : begin + size] for part in (of.nodes, of.place))
        read, _ = network().lstm(nodes[place.argsort()])
        torch.testing.assert_close(found[begin : begin + size], network().last(read)[place])
        begin += size


def test_graphs_may_come_in_any_order_of_size():
    of = dataclasses.replace(
        batch(), graph=torch.tensor([0, 1, 1, 2, 2, 2]), place=torch.tensor([0, 0, 1, 0, 1, 2])
    )
    read, _ = network().lstm(of.nodes[3:])
    torch.testing.assert_close(network()(of)[3:], network().last(read))


def test_the_generator_decides_the_parameters():
    one, same = (list(network().parameters()) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
