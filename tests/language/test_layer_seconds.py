"""Seconds of layers, and the kinds of layers."""

from __future__ import annotations

import numpy as np

from situate.language.cache import CacheOptions
from situate.language.layer_seconds import BY_LAYER, Timetable, layer_kinds, layer_seconds
from tests.language.planning.homes import home_with, small_model

OPTIONS = CacheOptions(1024)


# Layers with equal tensors are one kind, and a timetable has the seconds of each.
def test_layers_of_a_kind_have_equal_sizes():
    model = small_model(layers=12)
    kinds = layer_kinds(model)
    assert kinds[0] == 0
    assert 1 < len(set(kinds)) < 12
    for i, kind in enumerate(kinds):
        assert model.layers[i].size == model.layers[kind].size


def test_a_timetable_has_the_seconds_of_every_layer():
    model, home = small_model(layers=12), home_with((1, 400, 4), (1, 900, 25))
    times = Timetable(model, home, OPTIONS)
    table, whole = times.seconds(128, 500), layer_seconds(model, home, OPTIONS, 128, 500)
    for name in (*BY_LAYER, "output", "crossing"):
        assert np.array_equal(getattr(table, name), getattr(whole, name))
    assert times.seconds(128, 500) is table
    assert np.allclose(table.weight_sums, (whole.dense + whole.experts).sum(axis=0))
