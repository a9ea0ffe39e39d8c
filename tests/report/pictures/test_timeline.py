from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from situate.data.problem import Problem
from situate.report.pictures.op_colors import op_colors
from situate.report.pictures.timeline import (
    LOWER,
    MAX_LINES,
    UPPER,
    draw_ops,
    draw_transfers,
    merged,
)
from situate.schedule.schedule import Schedule
from tests.report.handmade import chain, schedule


def test_only_narrow_neighbours_become_one_box() -> None:
    start = np.array([0.0, 0.1, 0.2, 5.0, 6.0])
    end = np.array([0.1, 0.2, 0.3, 5.9, 6.1])
    first, last = merged(start, end, gap=0.5)
    assert first.tolist() == [0.0, 5.0, 6.0]
    assert last.tolist() == [0.3, 5.9, 6.1]


def test_nothing_merges_into_nothing() -> None:
    assert [len(part) for part in merged(np.empty(0), np.empty(0), 1.0)] == [0, 0]


def axes_of(problem: Problem, placement: list[int]) -> tuple[list[str], int]:
    """Texts, and the number of lines between lanes."""
    axes = Figure().add_subplot()
    plan = schedule(problem, placement)
    draw_ops(
        axes,
        problem,
        plan,
        op_colors(problem.graph.ops, plan.end - plan.start),
        1500,
        range(problem.d),
    )
    draw_transfers(axes, plan, 1500, range(problem.d))
    lines = sum(len(collection.get_paths()) for collection in axes.collections)
    return [text.get_text() for text in axes.texts], lines


def test_wide_ops_are_named() -> None:
    texts, lines = axes_of(chain(4), [0, 0, 0, 1])
    assert texts == ["op0", "op1", "op2", "op3"]
    assert lines == 1


def test_narrow_ops_are_not_named() -> None:
    texts, _ = axes_of(chain(400), [0] * 400)
    assert not any(text.startswith("op") for text in texts)


def test_very_many_transfers_draw_no_lines_between_lanes() -> None:
    count = MAX_LINES + 2
    assert axes_of(chain(count), [i % 2 for i in range(count)])[1] == 0


def test_transfers_too_narrow_to_tell_apart_are_drawn_as_one() -> None:
    problem = chain(2000)
    plan = schedule(problem, [i % 2 for i in range(2000)])
    plan.transfer_end[:] = plan.transfer_start + 0.01
    boxes = {pixels: _transfer_boxes(problem, plan, pixels) for pixels in (10**6, 10)}
    assert boxes[10**6] == 1999
    assert boxes[10] < 20


def _transfer_boxes(problem: Problem, plan: Schedule, pixels: int) -> int:
    axes = Figure().add_subplot()
    draw_transfers(axes, plan, pixels, range(problem.d))
    return sum(len(patch.get_path().vertices) // 5 for patch in axes.patches)


def test_ops_that_run_at_once_share_the_height_of_the_lane() -> None:
    problem = chain(3)
    plan = schedule(problem, [0, 0, 0])
    plan.start[:], plan.end[:] = 0.0, 3.0
    axes = Figure().add_subplot()
    draw_ops(axes, problem, plan, op_colors(problem.graph.ops, np.ones(3)), 1500, range(problem.d))
    boxes = [patch.get_path().vertices[:4, 1] for patch in axes.patches[1:4]]
    assert np.allclose([np.ptp(box) for box in boxes], (LOWER - UPPER) / 3)
    assert [box.min() for box in boxes] == sorted({box.min() for box in boxes})
    assert not axes.texts


def test_names_do_not_become_formulas() -> None:
    assert axes_of(chain(names=["$x_{", "$y$"]), [0, 1])[0] == ["$x_{", "$y$"]
