"""The graph of one pass."""

from __future__ import annotations

import pytest

from benchmarks.homes.llamacpp.model_files import MODELS
from situate.language.activations.blocks import PASS, Matrix
from situate.language.activations.passes import PassBuilder
from situate.language.activations.replay import _blocks
from situate.language.activations.tensors import Graph
from situate.language.cache import CacheOptions
from situate.language.layout import Layout
from tests.language.activations.models import model, options


def whole(name: str, outputs: int = 1) -> Graph:
    """The graph of a model on one GPU."""
    network = model(name)
    sizes, places = network.sizes, (0,) * len(network.layers)
    builder = PassBuilder(sizes, options(CacheOptions(1024), outputs=outputs))
    matrix = Matrix((sizes.width, sizes.vocabulary), 1000, 0)
    builder.begin(matrix._replace(place=1).tensor())
    for i, block in enumerate(_blocks(network, Layout((0,), places, places, 0))):
        builder.layer(block, True, last=i == len(places) - 1)
    return builder.end(Matrix((sizes.width,), 4 * sizes.width, 0).tensor(), matrix.tensor())


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_pass_ends_with_logits_of_the_tokens_that_need_them(name: str) -> None:
    graph = whole(name, outputs=3)
    assert graph.nodes[-1].shape == (model(name).sizes.vocabulary, 3)
    assert graph.nodes[-1].permanent


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_pass_reads_nearly_every_weight(name: str) -> None:
    read = {source.size for node in whole(name).nodes for source in node.sources if source.weight}
    matrices = {
        weight.size
        for layer in model(name).layers
        for weight in layer.weights
        if len(weight.shape) > 1
    }
    assert matrices <= read


def test_traits_name_what_weights_do_not_show() -> None:
    assert PASS["gpt-oss"].rows_last
    assert PASS["command-r"].parallel
    assert not PASS["llama"].scaled_embedding
