from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from situate.data.graph import Op
from situate.report.pictures.op_colors import LIGHT, OTHER, PALETTE, PHASES, ink_on, op_colors
from situate.report.pictures.timeline import WIRE

DEFICIENCIES = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""Linear RGB as they see it: Machado, Oliveira and Fernandes 2009, severity 1."""
XYZ = np.array(((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)))
"""From linear sRGB: IEC 61966-2-1."""


def linear(color: str) -> np.ndarray:
    channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE 1976 L*a*b* of linear sRGB."""
    ratio = XYZ @ rgb.clip(0, 1) / XYZ.sum(axis=1)
    x, y, z = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    light, dark = sorted((float(XYZ[1] @ linear(c)) for c in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_differ_for_readers_without_one_kind_of_cones(deficiency: str) -> None:
    visited = {
        c: lab(np.array(DEFICIENCIES[deficiency]) @ linear(c)) for c in (*PALETTE, OTHER, WIRE)
    }
    assert set(PHASES.values()) <= set(visited)
    for one, other in combinations(visited, 2):
        assert np.linalg.norm(visited[one] - visited[other]) >= 15, (one, other)


def test_text_contrasts_with_what_it_is_on() -> None:
    for color in PALETTE:
        ink = ink_on(color).replace("white", "#FFFFFF")
        assert contrast(color, ink) >= (5 if color in LIGHT else 2.8), color


def test_phases_come_in_the_order_of_a_step() -> None:
    ops = [Op("a", phase="update"), Op("b", phase="forward"), Op("c"), Op("d", phase="backward")]
    result = op_colors(ops, np.ones(4))
    assert result.labels == ("forward", "backward", "update", "other")
    assert [result.labels[i] for i in result.of] == ["update", "forward", "other", "backward"]
    assert len(set(result.colors)) == 4


def test_without_phases_top_level_modules_get_colours() -> None:
    ops = [Op("a", module="stem.conv"), Op("b", module="head"), Op("c", module="stem.bn")]
    result = op_colors(ops, np.ones(3))
    assert result.labels == ("stem", "head")
    assert result.of.tolist() == [0, 1, 0]


def test_of_many_modules_the_heaviest_keep_a_colour() -> None:
    ops = [Op(f"op{i}", module=f"m{i}") for i in range(20)]
    result = op_colors(ops, np.arange(20.0))
    assert result.labels == (*(f"m{i}" for i in range(20 - len(PALETTE), 20)), "other")
    assert result.of[0] == len(PALETTE)


def test_without_modules_kinds_do() -> None:
    result = op_colors([Op("a", kind="conv"), Op("b", kind="relu")], np.ones(2))
    assert result.labels == ("conv", "relu")


def test_text_on_light_colours_is_dark() -> None:
    result = op_colors([Op(f"op{i}", module=f"m{i}") for i in range(6)], np.ones(6))
    assert [result.ink(op) == "white" for op in range(6)] == [True, True, True, True, False, False]


def test_later_slices_have_lighter_shades_of_their_phase() -> None:
    ops = [Op(f"{s}{p}", phase=p, slice=s) for s in range(3) for p in ("forward", "backward")]
    result = op_colors(ops, np.ones(6))
    assert result.labels == ("forward", "backward")
    colors = [result.colors[i] for i in result.of]
    assert colors[:2] == [PHASES["forward"], PHASES["backward"]]
    assert len(set(colors)) == 6
    for phase in range(2):
        light = [XYZ[1] @ linear(color) for color in colors[phase::2]]
        assert light == sorted(light)
    for color in colors[2:]:
        assert contrast(color, ink_on(color).replace("white", "#FFFFFF")) >= 2.8, color
