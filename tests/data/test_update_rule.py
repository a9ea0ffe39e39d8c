"""The text of an update rule."""

from __future__ import annotations

import pytest

from situate.data.update_rule import OPTIMIZERS, RECIPES, UpdateRule, update_rule
from situate.errors import SituateError


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("clip", [None, 0.25, 1.0, 1e-30])
@pytest.mark.parametrize("recipe", [None, "megatron", "pure"])
def test_a_rule_is_read_as_it_is_written(kind: str, clip: float | None, recipe: str | None) -> None:
    rule = UpdateRule(kind, clip, RECIPES[recipe] if recipe else None)
    assert update_rule(str(rule)) == rule


def test_a_norm_may_be_a_whole_number() -> None:
    assert update_rule("adamw:clip=1") == UpdateRule("adamw", 1.0)


def test_options_stand_in_any_order() -> None:
    rule = update_rule("adamw:clip=1,recipe=amp")
    assert str(rule) == "adamw:recipe=amp,clip=1.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adamv:clip=1", "unknown optimizer 'adamv'; did you mean 'adam'"),
        ("adamw:recipe=fp16", "recipe fp16: its scaler of the loss skips updates"),
        ("adamw:recipe=fp8", "recipe fp8: PyTorch differentiates no product of float8 matrices"),
        ("adamw:recipe=megatorn", "unknown recipe 'megatorn'; did you mean 'megatron'"),
    ],
)
def test_an_unknown_name_has_a_nearest_one(text: str, message: str) -> None:
    with pytest.raises(SituateError, match=message):
        update_rule(text)


@pytest.mark.parametrize(
    "option",
    [
        *("", "clip", "clip=", "clip=0", "clip=-1", "clip=nan", "norm=1"),
        *("clip=1,clip=2", "recipe=amp,recipe=pure", "recipe=amp,"),
    ],
)
def test_a_norm_is_a_positive_number_and_options_stand_once(option: str) -> None:
    with pytest.raises(SituateError, match=r"optimizer 'sgd:.*a positive number, such as"):
        update_rule(f"sgd:{option}")


@pytest.mark.parametrize(
    ("name", "casts_model"), [("pure", True), ("megatron", False), ("amp", False)]
)
def test_a_model_without_masters_is_cast_itself(name: str, casts_model: bool) -> None:
    assert RECIPES[name].casts_model is casts_model
