"""Memory of each device for a layout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.homes.models import Cell, model_of
from situate.language.cache import CacheOptions
from situate.language.layout import HOST, Layout
from situate.language.memory import device_memory, is_pipelined
from situate.language.model import LanguageModel

OPTIONS = CacheOptions(8192)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    result = model_of(Cell("Qwen3 30B", "Q4_K_M", {}))
    assert result is not None
    return result


def layout(model: LanguageModel, host: int = 0, cut: int | None = None) -> Layout:
    n = model.sizes.layers
    cut = n if cut is None else cut
    layers = (HOST,) * host + (0,) * (cut - host) + (1,) * (n - cut)
    return Layout((0, 1) if cut < n else (0,), layers, layers, layers[-1])


# Every byte of weights and cache is on one device.
@pytest.mark.parametrize(("host", "cut"), [(0, None), (0, 20), (7, 20), (7, None)])
def test_weights_and_cache_add_up(model: LanguageModel, host: int, cut: int | None) -> None:
    parts = device_memory(model, layout(model, host, cut), OPTIONS, 2)
    assert len(parts) == 3
    assert sum(part.weights for part in parts) == model.size
    assert sum(part.cache for part in parts) == model.cache_bytes(OPTIONS)


def test_experts_may_lie_elsewhere_and_the_cache_stays_with_its_layer(
    model: LanguageModel,
) -> None:
    whole = layout(model)
    away = replace(whole, experts=(HOST,) * model.sizes.layers)
    before, after = (device_memory(model, place, OPTIONS, 1) for place in (whole, away))
    experts = model.bytes_by_role()["experts"]
    assert after[-1].weights - before[-1].weights == experts
    assert before[0].cache == after[0].cache
    # The largest matrix of experts is uploaded into the compute buffer.
    assert after[0].compute > before[0].compute or after[0].compute >= 152 * 2**20


def test_a_cache_may_be_in_host_memory(model: LanguageModel) -> None:
    gpu, host = device_memory(model, replace(layout(model), host_cache=True), OPTIONS, 1)
    assert gpu.cache == 0
    assert host.cache == model.cache_bytes(OPTIONS)


def test_a_split_of_tensors_shares_weights_and_cache(model: LanguageModel) -> None:
    first, second, _ = device_memory(
        model, replace(layout(model, cut=24), split="tensor"), OPTIONS, 2
    )
    assert first.weights == second.weights
    assert first.cache == second.cache


def test_growth_with_a_token_is_that_of_a_longer_context(model: LanguageModel) -> None:
    place = layout(model, 7, 20)
    short, long = (
        device_memory(model, place, CacheOptions(tokens), 2) for tokens in (8192, 8192 + 2560)
    )
    for a, b in zip(short, long, strict=True):
        assert b.total - a.total == pytest.approx(2560 * a.per_token, rel=0.01)


def test_only_gpus_in_use_have_a_context(model: LanguageModel) -> None:
    used, idle, host = device_memory(model, layout(model), OPTIONS, 2, context=5)
    assert (used.context, idle.context, host.context) == (5, 0, 0)
    assert idle.total == 0
    assert host.output == 4 * model.sizes.vocabulary


# Four copies of the inputs, if all layers are whole on several GPUs.
def test_pipeline_parallelism_needs_all_layers_on_several_gpus(model: LanguageModel) -> None:
    assert is_pipelined(layout(model, cut=20))
    assert not is_pipelined(layout(model))
    assert not is_pipelined(layout(model, 7, 20))
    assert not is_pipelined(replace(layout(model, cut=20), host_cache=True))
    piped, plain = (
        device_memory(model, place, OPTIONS, 2)[-1].compute
        for place in (layout(model, cut=20), layout(model))
    )
    copied = 2 * 512 * 8192 + 4 * 512 * model.sizes.width
    assert piped - plain == pytest.approx(3 * copied, rel=0.01)
