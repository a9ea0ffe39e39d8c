"""Feed-forward networks and mixtures of experts in a pass."""

from __future__ import annotations

import pytest

from situate.language.activations.networks import network
from situate.language.activations.replay import _blocks
from situate.language.activations.scope import Scope
from situate.language.activations.tensors import Tensor, entry
from situate.language.cache import CacheOptions
from situate.language.layout import HOST, Layout
from tests.language.activations.models import model, options

CACHE = CacheOptions(1024)


def nodes(name: str, layer: int = 0, experts: int = 0, **changes: bool) -> list[Tensor]:
    """The ops of the network of a layer."""
    described = model(name)
    count = len(described.layers)
    layout = Layout((0,), (0,) * count, (experts,) * count, 0)
    scope = Scope(described.sizes, options(CACHE, **changes))
    scope.enter(_blocks(described, layout)[layer], True)
    result = network(scope, entry((described.sizes.width, scope.tokens)))
    assert result.shape == (described.sizes.width, scope.tokens)
    scope.graph.expand(result)
    return scope.graph.nodes


@pytest.mark.parametrize(
    ("name", "products"), [("llama", 3), ("glm4", 2), ("starcoder2", 2), ("command-r", 3)]
)
def test_a_dense_network_multiplies_by_its_matrices(name: str, products: int) -> None:
    sources = [node.sources for node in nodes(name)]
    assert sum(len(s) == 2 and len(s[0].shape) == 2 and s[0].weight for s in sources) == products


def test_a_mixture_sums_the_experts_in_use() -> None:
    e = model("qwen3moe").sizes.experts
    assert e is not None
    ops = nodes("qwen3moe")
    assert sum(len(node.sources) == 3 and node.sources[0].weight for node in ops) == 3
    down = 4 * model("qwen3moe").sizes.width * e.used * 512
    assert down in [node.size for node in ops]


def test_experts_have_a_device_of_their_own() -> None:
    products = [
        node.sources[0].device
        for node in nodes("qwen3moe", experts=HOST)
        if node.sources and node.sources[0].weight
    ]
    assert products.count(1) == 3
    assert products.count(0) == 1


def test_shared_experts_are_added() -> None:
    assert len(nodes("deepseek2", 1)) > len(nodes("qwen3moe"))
    assert len(nodes("deepseek2", 0)) == len(nodes("llama"))


# Builds of 2025 computed the gate in place.
def test_early_builds_have_fewer_activations_at_once() -> None:
    early, late = (
        sum(node.size for node in nodes("llama", early=early) if not node.in_place)
        for early in (True, False)
    )
    assert late - early == 4 * max(model("llama").sizes.hidden) * 512
