"""Ops that all parts of a layer share."""

from __future__ import annotations

from situate.language.activations.blocks import Block, Matrix
from situate.language.activations.scope import Scope
from situate.language.activations.tensors import F16, F32, entry
from situate.language.cache import CacheOptions
from tests.language.activations.models import model, options


def scope(name: str = "llama", pinned: bool = True) -> Scope:
    result = Scope(model(name).sizes, options(CacheOptions(4096, slots=3)))
    weights = (("a.weight", Matrix((64, 32), 100, 1)), ("a.bias", Matrix((32,), 128, 1)))
    result.enter(Block(1, False, weights), pinned)
    return result


def test_tokens_are_a_multiple_of_the_slots() -> None:
    assert scope().tokens == 513


def test_a_product_has_a_bias_where_the_layer_has_one() -> None:
    here = scope()
    result = here.product("a", entry((64, 5)))
    assert result.shape == (32, 5)
    assert result.in_place
    assert result.sources[0].batch == 5
    del here.weights["a.bias"]
    assert not here.product("a", entry((64, 5))).in_place


def test_normalisations_are_pinned_to_their_layer() -> None:
    for pinned, device in ((True, 1), (False, -1)):
        here = scope(pinned=pinned)
        del here.weights["a.bias"]
        assert here.norm(entry((64, 5)), "a").sources[0].device == device


def test_only_the_root_mean_square_is_computed_in_place() -> None:
    x = entry((64, 5))
    assert scope().normalised(x).in_place
    assert not scope("command-r").normalised(x).in_place


# A mask has 16 bits with flash attention.
def test_a_mask_covers_the_cache_of_each_slot() -> None:
    sizes = model("llama").sizes
    cache = CacheOptions(4096)
    flash, plain = (Scope(sizes, options(cache, flash=flash)).masks[False] for flash in (1, 0))
    assert (flash.size, plain.size) == (F16 * 4096 * 512, F32 * 4096 * 512)
