"""Passes of language models as graphs."""

from __future__ import annotations

import pytest

from situate.errors import SituateError
from situate.language.cache import CacheOptions
from situate.language.phase_graph import PassSize, phase_graph
from tests.language.planning.homes import small_model

OPTIONS = CacheOptions(4096)


def graph_of(model, phase="decode", tokens=1, depth=1000):
    return phase_graph(model, OPTIONS, PassSize(phase, tokens, depth))


def ops_of(graph, kind):
    return [op for op in graph.ops if op.kind == kind]


# Bytes: weights and caches stay, and a token reads its experts alone.
@pytest.mark.parametrize("mixture", [False, True])
def test_all_weights_and_caches_are_held(mixture):
    model = small_model(mixture)
    graph = graph_of(model)
    held = sum(op.persistent for op in graph.ops)
    tied = sum(weight.size for weight in model.embedding) if model.tied else 0
    assert held == model.size + model.cache_bytes(OPTIONS) + tied
    caches = [tensor for tensor in graph.tensors if tensor.resident]
    assert [graph.ops[tensor.producer].kind for tensor in caches] == ["cache"] * 4
    assert all(tensor.size < graph.ops[tensor.producer].persistent for tensor in caches)


def test_a_token_reads_the_experts_in_use():
    model = small_model()
    share = model.sizes.experts.used / model.sizes.experts.count
    for op, layer in zip(ops_of(graph_of(model), "experts"), model.layers, strict=True):
        experts = [weight for weight in layer.weights if weight.role == "experts"]
        assert op.traffic == round(op.persistent * share)
        assert op.flops == round(2 * share * sum(weight.elements for weight in experts))
    batch = ops_of(graph_of(model, "prefill", 512), "experts")[0]
    assert batch.traffic > 0.99 * batch.persistent


def test_depth_is_read_from_the_cache():
    model = small_model(False)
    short, long = (ops_of(graph_of(model, depth=depth), "attention")[0] for depth in (10, 1010))
    keys = model.layers[0].cache
    assert long.traffic - short.traffic == 1000 * 2 * (keys.key_width + keys.value_width)
    assert long.flops > short.flops


# Order: each layer follows the one before, and logits come last.
def test_layers_follow_one_another():
    graph = graph_of(small_model())
    names = [op.name for op in graph.ops]
    assert names[0] == "embedding"
    assert names[-1] == "output"
    readers = {tensor.name: [names[i] for i in tensor.consumers] for tensor in graph.tensors}
    assert readers["blk.0.attention.output"] == ["blk.0.network", "blk.0.experts"]
    assert readers["blk.0.experts.output"] == ["blk.1.attention"]
    assert [tensor.name for tensor in graph.tensors if tensor.output] == ["output.output"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"phase": "decod"}, "unknown phase 'decod'; did you mean 'decode'"),
        ({"tokens": 0}, "a pass of 0 tokens"),
        ({"depth": 4096}, "do not fit a context of 4,096"),
        ({"depth": 10000}, "and small ends at 8,192"),
    ],
)
def test_passes_that_cannot_be_are_refused(values, message):
    with pytest.raises(SituateError, match=message):
        graph_of(small_model(), **values)
