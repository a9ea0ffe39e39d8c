"""Memory of a home beside layers, and GPUs that are alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from situate.language.cache import CacheOptions
from situate.language.expert_kinds import kind_sizes, with_kinds
from situate.language.layout import HOST, Layout
from situate.language.planning.capacity import Capacity, alike, free_bytes, layer_loads, memory_of
from tests.language.planning.homes import all_layouts, home_with, homes, small_model

OPTIONS = CacheOptions(1024)


# Loads are the bytes of weights and caches, whichever device has them.
@pytest.mark.parametrize("mixture", [False, True])
def test_loads_are_weights_and_caches(mixture):
    model = small_model(mixture)
    loads = layer_loads(model, OPTIONS, host_cache=False)
    weights = np.array([layer.size for layer in model.layers])
    caches = np.array([layer.cache.bytes(OPTIONS) for layer in model.layers])
    assert (loads.trunk + loads.experts == weights + caches).all()
    on_host = layer_loads(model, OPTIONS, host_cache=True)
    assert (on_host.trunk + on_host.experts == weights).all()
    assert (loads.experts > 0).all() == mixture


@settings(max_examples=5)
@given(home=homes(most=2), data=st.data())
def test_free_bytes_are_those_that_nothing_takes(home, data):
    model = small_model(layers=3)
    layout = data.draw(st.sampled_from(list(all_layouts(model, len(home.accelerators), (512,)))))
    memory = memory_of(model, layout, OPTIONS, home)
    for part, processor, free in zip(
        memory, home.processors, free_bytes(memory, home), strict=True
    ):
        assert free == pytest.approx(processor.memory - part.total - part.margin)


def test_a_gpu_that_is_left_out_has_no_context():
    home, model = home_with((4, 400, 25), (4, 400, 25)), small_model()
    layout = Layout((1,), (1,) * 4, (1,) * 4, 1)
    first, second, host = memory_of(model, layout, OPTIONS, home)
    assert first.total == 0
    assert second.weights > 0
    assert host.weights > 0  # the embedding
    assert HOST == -1


# Two layers of each kind stand for all of them.
@settings(max_examples=10)
@given(home=homes(most=2), data=st.data())
def test_few_layers_have_the_buffers_of_all(home, data):
    model = small_model(layers=5)
    layouts = list(all_layouts(small_model(layers=3), len(home.accelerators), (512,)))
    layout = data.draw(st.sampled_from(layouts))
    layout = replace(
        layout,
        layers=(layout.layers[0],) * 2 + layout.layers,
        experts=(layout.experts[0],) * 2 + layout.experts,
    )
    capacity = Capacity(model, home, OPTIONS)
    assert capacity.beside(layout) == pytest.approx(capacity.beside_all(layout))


def test_bytes_of_divided_experts_lie_where_they_are():
    model, home = small_model(), home_with((4, 400, 25))
    capacity = Capacity(model, home, OPTIONS)
    layout = Layout((0,), (0,) * 4, (HOST,) * 4, 0)
    divided = with_kinds(model, layout, 1, frozenset({"down"}), 0, HOST)
    change = capacity.layer_bytes(divided) - capacity.layer_bytes(layout)
    size = kind_sizes(model.layers[1])["down"]
    assert change.tolist() == [size, -size]
    assert capacity.beside(divided) == pytest.approx(capacity.beside_all(divided))
    assert capacity.exactly().fits(divided)


# Bounds of rules hold for exact buffers.
@settings(max_examples=20)
@given(home=homes(most=2), mixture=st.booleans(), data=st.data())
def test_a_layout_that_fits_exactly_fits_by_rules(home, mixture, data):
    model = small_model(mixture, layers=3)
    layouts = list(all_layouts(model, len(home.accelerators), (128, 512)))
    layout = data.draw(st.sampled_from(layouts))
    capacity = Capacity(model, home, OPTIONS)
    exactly = capacity.exactly()
    assert (capacity.beside(layout) <= exactly.beside_all(layout) + 1e-6).all()
    assert capacity.fits(layout) or not exactly.fits(layout)


# GPUs are alike if they may change places.
@pytest.mark.parametrize(
    ("gpus", "kinds"),
    [
        ([(4, 400, 25), (4, 400, 25)], [0, 0]),
        ([(4, 400, 25), (4, 200, 25)], [0, 1]),
        ([(4, 400, 25), (4, 400, 4)], [0, 1]),
        ([(4, 400, 25), (2, 400, 25), (4, 400, 25)], [0, 1, 0]),
    ],
)
def test_gpus_of_one_kind_differ_in_nothing(gpus, kinds):
    assert alike(home_with(*gpus)) == kinds
