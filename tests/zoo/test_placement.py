"""Placements by hand."""

from __future__ import annotations

import dataclasses

import pytest

from situate import zoo
from situate.data.graph import Graph, Op
from situate.errors import SituateError

LSTM, BLOCKS = ("rnnlm", "nmt2"), ("gpt2", "bert", "vit", "llama_7b")


def by_module(graph: Graph, stages: list[int], part: str) -> set[int]:
    return {s for op, s in zip(graph.ops, stages, strict=True) if part in op.module}


# Every placement is complete and keeps groups together.
@pytest.mark.parametrize("devices", [1, 2, 3, 8])
@pytest.mark.parametrize("name", ["inception_v3", "cifar_cnn", *LSTM, *BLOCKS])
def test_every_op_has_a_stage_and_groups_are_together(name: str, devices: int):
    graph = zoo.load(name)
    stages = zoo.expert(graph, devices)
    assert len(stages) == len(graph.ops)
    assert set(stages) <= set(range(devices))
    groups = {(op.group, s) for op, s in zip(graph.ops, stages, strict=True) if op.group}
    assert len(groups) == len({group for group, _ in groups})


def test_a_convolutional_network_stays_on_one_device():
    assert set(zoo.expert(zoo.load("resnet50"), 4)) == {0}


# Recurrent networks by layer, transformers by block.
def test_every_lstm_layer_has_its_device():
    graph = zoo.load("rnnlm")
    stages = zoo.expert(graph, 4)
    assert [by_module(graph, stages, f"layers.{i}") for i in range(4)] == [{0}, {1}, {2}, {3}]
    assert by_module(graph, stages, "embedding") == {0}
    assert by_module(graph, stages, "softmax") == {3}
    assert max(zoo.expert(graph, 8)) == 3


def test_layers_take_turns_where_devices_are_few():
    graph = zoo.load("rnnlm")
    stages = zoo.expert(graph, 2)
    assert [by_module(graph, stages, f"layers.{i}") for i in range(4)] == [{0}, {1}, {0}, {1}]


def test_encoder_and_decoder_share_devices_and_attention_is_with_the_last_layer():
    graph = zoo.load("nmt2")
    stages = zoo.expert(graph, 2)
    assert by_module(graph, stages, "coder.layers.0") == {0}
    assert by_module(graph, stages, "coder.layers.1") == {1}
    assert by_module(graph, stages, "encoder.backward_layer") == {0}
    for part in ("attention", "keys", "combine", "softmax"):
        assert by_module(graph, stages, part) == {1}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_of_a_transformer_are_cut_into_equal_runs(name: str):
    graph = zoo.load(name)
    stages = zoo.expert(graph, 4)
    assert by_module(graph, stages, "embed") <= {0}
    loss = [s for op, s in zip(graph.ops, stages, strict=True) if op.name.startswith("loss/")]
    assert set(loss) == {3}
    sizes = [stages.count(stage) for stage in range(4)]
    assert max(sizes) < 1.3 * min(sizes)


@pytest.mark.parametrize("name", BLOCKS)
def test_only_borders_between_runs_are_crossed(name: str):
    """The hidden state crosses, forward and back, three times."""
    graph = zoo.load(name)
    stages = zoo.expert(graph, 4)
    crossing = [
        tensor
        for tensor in graph.tensors
        if {stages[consumer] for consumer in tensor.consumers} - {stages[tensor.producer]}
    ]
    large = [tensor for tensor in crossing if tensor.size > max(t.size for t in crossing) / 2]
    assert len(large) <= 2 * 6


def test_other_graphs_have_none():
    own = Graph("mine", (Op("a"),))
    with pytest.raises(SituateError, match="no expert placement is known for graph 'mine'; known"):
        zoo.expert(own, 2)
    with pytest.raises(SituateError, match="'resnet50'"):
        zoo.expert(dataclasses.replace(own, name="resnet50"), 2)
