"""FLOPs of attention in ONNX, in all the ways in which queries, keys and values are handed over."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from situate.readers.onnx.operators.work import work
from situate.readers.onnx.shapes import Info, Shapes
from tests.readers.models import node

CONTRIB = "com.microsoft"

SHAPES = {
    "hidden": (2, 10, 64),
    "one": (2, 1, 64),
    "some": (2, 20, 64),
    "few": (2, 10, 16),
    "one_few": (2, 1, 16),
    "packed": (2, 10, 96),
    "packed_all": (2, 10, 8, 3, 8),
    "packed_keys": (2, 20, 8, 2, 8),
    "past": (2, 8, 511, 8),
    "past_few": (2, 2, 511, 8),
    "none": (2, 2, 0, 8),
    "past_both": (2, 2, 8, 511, 8),
    "projection": (64, 192),
    "queries": (2, 8, 10, 8),
    "keys_few": (2, 2, 20, 8),
    "values_few": (2, 2, 20, 32),
    "wide": (2, 8, 10, 32),
}

ONE_KEY = 4 * 2 * 64
"""FLOPs of a query of 64 numbers and one key, in both sequences."""


def figures(kind, inputs, output, **attributes):
    made = node(kind, inputs, output, **attributes)
    return work(made, Shapes({name: Info(shape, "float32") for name, shape in SHAPES.items()}))


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "flops"),
    [
        ("MultiHeadAttention", "hidden some some", "hidden", ONE_KEY * 10 * 20),
        ("MultiHeadAttention", "one one one - - - past past", "one", ONE_KEY * 512),
        ("MultiHeadAttention", "packed_all", "hidden", ONE_KEY * 10 * 10),
        ("MultiHeadAttention", "hidden packed_keys", "hidden", ONE_KEY * 10 * 20),
        ("GroupQueryAttention", "one one_few one_few past_few past_few", "one", ONE_KEY * 512),
        ("GroupQueryAttention", "packed - - none none", "hidden", ONE_KEY * 10 * 10),
        ("GroupQueryAttention", "packed - - past_few past_few", "hidden", ONE_KEY * 10 * 521),
    ],
)
def test_every_query_meets_every_key_those_of_the_past_too(kind, inputs, output, flops):
    assert figures(kind, inputs, output, domain=CONTRIB)[0] == flops


def test_values_may_be_wider_than_keys():
    found, _ = figures("Attention", "queries keys_few values_few", "wide")
    assert found == 2 * 2 * 8 * 10 * 20 * (8 + 32)


def test_the_standard_one_has_a_past_too():
    found, _ = figures("Attention", "queries queries queries - past past", "queries")
    assert found == ONE_KEY * 10 * 521


@pytest.mark.parametrize(
    ("kind", "past"), [("Attention", "- - past_both"), ("QAttention", "- - - - - - past_both")]
)
def test_one_that_projects_its_input_counts_that(kind, past):
    projection = 2 * 2 * 10 * 64 * 192
    found, _ = figures(kind, "hidden projection", "hidden", domain=CONTRIB)
    assert found == projection + ONE_KEY * 10 * 10
    found, _ = figures(kind, f"hidden projection {past}", "hidden", domain=CONTRIB)
    assert found == projection + ONE_KEY * 10 * 521


def test_an_input_that_is_left_out_moves_no_bytes():
    figure = figures("GroupQueryAttention", "packed - - none none", "hidden", domain=CONTRIB)
    assert figure[1] == 4 * 2 * 10 * (96 + 64)


@pytest.mark.parametrize("inputs", ["", "hidden", "- hidden hidden"])
def test_one_that_lacks_inputs_crashes_nothing(inputs):
    assert figures("GroupQueryAttention", inputs, "hidden", domain=CONTRIB)[0] >= 0
