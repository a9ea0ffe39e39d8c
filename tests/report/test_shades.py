from __future__ import annotations

import numpy as np

from situate.graph import Op
from situate.report.shades import PALETTE, shades


def test_phases_come_in_the_order_of_a_step() -> None:
    ops = [Op("a", phase="update"), Op("b", phase="forward"), Op("c"), Op("d", phase="backward")]
    found = shades(ops, np.ones(4))
    assert found.labels == ("forward", "backward", "update", "other")
    assert [found.labels[i] for i in found.of] == ["update", "forward", "other", "backward"]
    assert len(set(found.colors)) == 4


def test_without_phases_top_level_modules_get_colours() -> None:
    ops = [Op("a", module="stem.conv"), Op("b", module="head"), Op("c", module="stem.bn")]
    found = shades(ops, np.ones(3))
    assert found.labels == ("stem", "head")
    assert found.of.tolist() == [0, 1, 0]


def test_of_many_modules_the_heaviest_keep_a_colour() -> None:
    ops = [Op(f"op{i}", module=f"m{i}") for i in range(20)]
    found = shades(ops, np.arange(20.0))
    assert found.labels == (*(f"m{i}" for i in range(20 - len(PALETTE), 20)), "other")
    assert found.of[0] == len(PALETTE)


def test_without_modules_kinds_do() -> None:
    found = shades([Op("a", kind="conv"), Op("b", kind="relu")], np.ones(2))
    assert found.labels == ("conv", "relu")


def test_text_on_light_colours_is_dark() -> None:
    found = shades([Op(f"op{i}", module=f"m{i}") for i in range(6)], np.ones(6))
    assert [found.ink(op) == "white" for op in range(6)] == [True, True, True, True, False, False]
