"""Layouts that divide every matrix over GPUs."""

from __future__ import annotations

from dataclasses import replace

from situate.language.planning.divided import best_divided
from tests.language.planning.homes import home_with, planner_of, small_model


def divided(*gpus):
    planner = planner_of(small_model(False), home_with(*gpus))
    kinds = planner.kinds
    layout, seconds = best_divided(planner.capacity, planner.times, planner.work, kinds, (512, 128))
    return planner, layout, seconds


# The best set of GPUs, with its seconds.
def test_a_slow_gpu_has_no_part():
    planner, layout, seconds = divided((4, 400, 25), (4, 10, 25), (4, 400, 25))
    assert layout.order == (0, 2)
    assert layout.split == "tensor"
    assert planner.priced(layout).seconds == seconds


def test_gpus_without_the_memory_have_no_part():
    planner, layout, _ = divided((4, 400, 25), (0.051, 900, 25), (4, 400, 25))
    assert layout.order == (0, 2)
    assert planner.priced(layout).feasible


def test_one_gpu_divides_nothing():
    assert divided((4, 400, 25))[1] is None


def test_a_plan_is_proved_against_divided_layouts():
    planner = planner_of(small_model(False), home_with((4, 40, 25), (4, 40, 25)))
    plan = replace(planner, divided=True).plan()
    assert plan.layout.split == "tensor"
    assert plan.bound <= plan.seconds < planner.plan().seconds
