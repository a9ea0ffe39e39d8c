"""The text of an update rule."""

from __future__ import annotations

import pytest

from situate.data.update_rule import OPTIMIZERS, UpdateRule, update_rule
from situate.errors import SituateError


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("clip", [None, 0.25, 1.0, 1e-30])
def test_a_rule_is_read_as_it_is_written(kind: str, clip: float | None) -> None:
    rule = UpdateRule(kind, clip)
    assert update_rule(str(rule)) == rule


def test_a_norm_may_be_a_whole_number() -> None:
    assert update_rule("adamw:clip=1") == UpdateRule("adamw", 1.0)


def test_an_unknown_optimizer_has_a_nearest_one() -> None:
    with pytest.raises(SituateError, match="unknown optimizer 'adamv'; did you mean 'adam'"):
        update_rule("adamv:clip=1")


@pytest.mark.parametrize("option", ["", "clip", "clip=", "clip=0", "clip=-1", "clip=nan", "norm=1"])
def test_a_norm_is_a_positive_number(option: str) -> None:
    with pytest.raises(SituateError, match=r"optimizer 'sgd:.*a positive number, such as"):
        update_rule(f"sgd:{option}")
