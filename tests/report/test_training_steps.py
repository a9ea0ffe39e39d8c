"""Simulated steps of layouts as text and as values."""

from __future__ import annotations

from dataclasses import replace

from situate.report.training_steps import SimulatedStep, step_figures, step_text, steps_table
from tests.report.test_training import text

STEP = SimulatedStep(
    ops=1200, seconds=0.5, best=None, floor=0.4, gap=0.25, peak=2**30, devices=8, gpus=8
)


# A line for one layout, a table for several.
def test_a_step_is_a_line():
    output = step_text(STEP)
    assert "500 ms in the program's order" in output
    assert "25.0 % above the lower bound" in output
    assert "search" not in output


def test_a_searched_step_names_both_times():
    searched = SimulatedStep(1200, 0.5, 0.45, 0.4, 0.125, 2**30, 8, 8)
    assert "500 ms in the program's order, 450 ms after a search" in step_text(searched)


def test_a_step_without_room_has_no_gap():
    full = replace(STEP, gap=None)
    assert "does not fit" in step_text(full)
    assert "lower bound" not in step_text(full)
    assert "does not fit" in text(steps_table([("dp=2", 0.48, full)]))


def test_a_step_on_a_part_of_the_gpus_says_so():
    part = replace(STEP, gpus=512)
    assert "1,200 ops on 8 of 512 GPUs" in step_text(part)
    assert "8 of 512 GPUs" in text(steps_table([("dp=512", 0.48, part)]))


def test_layouts_without_a_step_have_dashes():
    output = text(steps_table([("dp=2", 0.48, STEP), ("dp=512", 0.1, None)]))
    assert "480 ms" in output
    assert "1,200" in output
    assert output.count("-") >= 5


def test_figures_are_plain():
    assert step_figures(None) is None
    assert step_figures(STEP) == {
        "ops": 1200,
        "seconds": 0.5,
        "best": None,
        "floor": 0.4,
        "gap": 0.25,
        "peak": 2**30,
        "devices": 8,
        "gpus": 8,
    }
