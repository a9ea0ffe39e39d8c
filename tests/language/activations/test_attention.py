"""Attention in a pass."""

from __future__ import annotations

import pytest

from situate.language.activations.attention import attention
from situate.language.activations.replay import _blocks
from situate.language.activations.scope import Scope
from situate.language.activations.tensors import Tensor, entry
from situate.language.cache import CacheOptions
from situate.language.layout import Layout
from tests.language.activations.models import model, options


def nodes(name: str, cache: CacheOptions, layer: int = 0, **changes: bool) -> list[Tensor]:
    """The ops of the attention of a layer."""
    network = model(name)
    places = (0,) * len(network.layers)
    scope = Scope(network.sizes, options(cache, **changes))
    scope.enter(_blocks(network, Layout((0,), places, places, 0))[layer], True)
    result = attention(scope, entry((network.sizes.width, scope.tokens)))
    assert result.shape == (network.sizes.width, scope.tokens)
    scope.graph.expand(result)
    return scope.graph.nodes


@pytest.mark.parametrize("name", ["llama", "phi3", "gpt-oss", "deepseek2", "cohere2"])
@pytest.mark.parametrize("flash", [True, False])
def test_attention_has_the_width_of_the_residual_stream(name: str, flash: bool) -> None:
    nodes(name, CacheOptions(1024), flash=flash)


def test_scores_of_all_heads_are_in_memory_without_flash_attention() -> None:
    heads = max(model("llama").sizes.heads)
    sizes = [node.size for node in nodes("llama", CacheOptions(2048), flash=False)]
    assert 4 * heads * 512 * 2048 in sizes
    assert 4 * heads * 512 * 2048 not in [n.size for n in nodes("llama", CacheOptions(2048))]


def test_quantised_caches_rotate_heads_before_and_after() -> None:
    plain, quantised = (
        len(nodes("llama", CacheOptions(2048, kind, kind))) for kind in ("F16", "Q8_0")
    )
    assert quantised > plain
    early = nodes("llama", CacheOptions(2048, "Q8_0", "Q8_0"), early=True)
    assert len(early) < quantised


def test_gpus_may_need_room_for_keys_and_values_in_16_bits() -> None:
    sizes, cache = model("llama").sizes, CacheOptions(2048, "Q8_0", "Q8_0")
    totals = [
        sum(node.size for node in nodes("llama", cache, converts=converts) if node.free_choice)
        for converts in (True, False)
    ]
    heads = max(sizes.kv_heads) * (sizes.key_size + sizes.value_size)
    assert totals[0] - totals[1] == 2 * heads * 2048


# Layers of Command A that see the whole context have no rotary positions.
def test_positions_may_belong_to_windows_alone() -> None:
    windowed, whole = (nodes("cohere2", CacheOptions(4096), layer) for layer in (0, 3))
    assert len(windowed) == len(whole) + 2
