from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from situate.data.problem import Problem
from situate.report.pictures.memory_chart import FLOOR, LIVE, OVER, PERSISTENT, ROOM, draw_memory
from tests.report.handmade import chain, schedule


def areas(problem: Problem, placement: list[int], pixels: int = 1500) -> dict[str, float]:
    """Height of the tallest area of each colour on the first device, as a share of the room."""
    axes = Figure().add_subplot()
    draw_memory(axes, problem, schedule(problem, placement), pixels, range(problem.d))
    heights: dict[str, float] = {}
    for collection in axes.collections:
        top = min(path.vertices[:, 1].min() for path in collection.get_paths())
        color = to_hex(collection.get_facecolor()[0]).upper()
        if top < 1:
            heights[color] = (FLOOR - top) / ROOM
    return heights


def test_areas_are_drawn_to_the_scale_of_the_limit() -> None:
    result = areas(chain(3, devices=1, memory=300), [0, 0, 0])
    assert np.isclose(result[LIVE], 231 / 300)
    assert np.isclose(result[PERSISTENT], 30 / 300)
    assert OVER not in result


def test_what_is_above_the_limit_has_its_own_colour() -> None:
    result = areas(chain(3, devices=1, memory=200), [0, 0, 0])
    assert np.isclose(result[OVER], 1.0)
    assert np.isclose(result[LIVE], 200 / 231)


def test_what_is_held_above_the_limit_has_that_colour_too() -> None:
    result = areas(chain(3, devices=1, memory=20), [0, 0, 0])
    assert np.isclose(result[PERSISTENT], 20 / 231)


def test_thinning_lets_a_peak_last_no_longer_than_its_pixel() -> None:
    problem = chain(300, devices=1, memory=4000)
    plan = schedule(problem, [0] * 300)
    plan.end[-1] = 3000.0
    axes = Figure().add_subplot()
    draw_memory(axes, problem, replace(plan, makespan=3000.0), 20, [0])
    (live,) = (c for c in axes.collections if to_hex(c.get_facecolor()[0]).upper() == LIVE)
    late = live.get_paths()[0].vertices
    top = late[late[:, 0] > 1000.0, 1].min()
    assert np.isclose((FLOOR - top) / ROOM, 3101 / 4000)


def test_thinning_keeps_the_peak() -> None:
    problem = chain(300, devices=1, memory=4000)
    full, thin = (areas(problem, [0] * 300, pixels)[LIVE] for pixels in (1500, 20))
    assert full == thin
