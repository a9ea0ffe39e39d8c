"""Recipes of states, by their published bytes."""

from __future__ import annotations

import pytest

from situate.language.training.recipes import RECIPES, find_recipe


# Bytes for each parameter, as the papers and the programs' documentation state them.
@pytest.mark.parametrize(
    ("name", "optimizer", "total"),
    [
        ("megatron", None, 18),
        ("deepspeed", None, 16),
        ("amp", None, 16),
        ("fsdp2", None, 16),
        ("pure", None, 8),
        ("pure", "adamw8bit", 4 + 2 * (1 + 4 / 256)),
        ("megatron", "sgd", 10),
    ],
)
def test_states_have_the_published_bytes(name, optimizer, total):
    recipe = find_recipe(name, None, optimizer)
    assert recipe.weight + recipe.gradient + recipe.master + recipe.optimizer.bytes == total


def test_float32_weights_are_their_own_masters():
    recipe = find_recipe("megatron", "fp32", None)
    assert (recipe.weight, recipe.gradient, recipe.master) == (4, 4, 0)


def test_moments_of_pure_states_have_their_type():
    assert find_recipe("pure", None, "adamw").optimizer.bytes == 4


def test_every_recipe_names_its_product_type():
    assert {recipe.product_type for recipe in RECIPES.values()} == {"bfloat16"}
