"""Kinds of experts' matrices, and layouts that divide them."""

from __future__ import annotations

import pytest

from situate.language.expert_kinds import (
    divided_layers,
    expert_kind,
    expert_places,
    kind_sizes,
    with_kinds,
)
from situate.language.layout import HOST, Layout
from tests.language.planning.homes import small_model

MODEL = small_model()
AWAY = Layout((0,), (0,) * 4, (HOST,) * 4, 0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("blk.3.ffn_up_exps.weight", "up"),
        ("blk.3.ffn_gate_up_exps.weight", "gate_up"),
        ("blk.3.ffn_down_exps.bias", "down"),
        ("blk.3.ffn_gate_inp.weight", ""),
        ("blk.3.ffn_up_shexp.weight", ""),
    ],
)
def test_kinds_are_read_from_names(name, kind):
    assert expert_kind(name) == kind


def test_sizes_of_kinds_are_those_of_the_experts():
    layer = MODEL.layers[1]
    sizes = kind_sizes(layer)
    assert set(sizes) == {"gate", "up", "down"}
    assert sizes.total() == sum(w.size for w in layer.weights if w.role == "experts")


# The device of most of the bytes has the experts, and the rest is moved.
@pytest.mark.parametrize(
    ("kinds", "place", "moved"),
    [
        (("down",), HOST, {("blk.2.ffn_down_exps.weight", 0)}),
        (("gate", "up"), 0, {("blk.2.ffn_down_exps.weight", HOST)}),
        (("gate", "up", "down"), 0, set()),
        ((), HOST, set()),
    ],
)
def test_some_kinds_of_one_layer_lie_on_a_gpu(kinds, place, moved):
    layout = with_kinds(MODEL, AWAY, 2, frozenset(kinds), 0, HOST)
    assert layout.experts == (HOST, HOST, place, HOST)
    assert set(layout.moved) == moved
    assert divided_layers(layout) == ([2] if moved else [])
    places = {expert_kind(w.name): place for w, place in expert_places(MODEL, layout, 2)}
    assert places == {k: 0 if k in kinds else HOST for k in ("gate", "up", "down")}


def test_layers_are_divided_one_by_one():
    layout = with_kinds(MODEL, AWAY, 2, frozenset({"up"}), 0, HOST)
    layout = with_kinds(MODEL, layout, 1, frozenset({"up"}), 0, HOST)
    assert divided_layers(layout) == [1, 2]
    assert divided_layers(with_kinds(MODEL, layout, 1, frozenset(), 0, HOST)) == [2]
