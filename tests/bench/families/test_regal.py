"""REGAL's synthetic graphs."""

from __future__ import annotations

from situate.bench.families.regal import MODELS, bandwidth, synthetic, zero_cost


def test_there_are_graphs_of_every_model_on_two_and_on_four_devices():
    for instances in (zero_cost(), bandwidth()):
        names = [instance.name for instance in instances]
        assert {name.split("-")[0] for name in names} == set(MODELS)
        assert {name[-4:] for name in names} == {"on 2", "on 4"}


def test_transfers_take_no_time_or_as_long_as_their_tensor_has_units():
    free, paid = zero_cost()[0].make().graph, bandwidth()[0].make().graph
    assert {tensor.seconds for tensor in free.tensors} == {0.0}
    assert all(tensor.seconds == tensor.size for tensor in paid.tensors)
    assert free.ops == paid.ops


def test_a_graph_has_a_source_and_a_sink_beside_its_ops():
    graph = synthetic("ba", 50, 0)
    assert len(graph.ops) == 52
    assert {op for op, _ in graph.edges()} == set(range(51))
    assert {op for _, op in graph.edges()} == set(range(1, 52))
