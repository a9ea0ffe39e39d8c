"""Layouts with less on GPUs that lack memory."""

from __future__ import annotations

from dataclasses import replace

from situate.language.layout import HOST
from situate.language.planning.repair import fitting_neighbour, overflow
from tests.language.planning.homes import home_with, planner_of, small_model


def test_a_plan_that_fits_stays() -> None:
    planner = planner_of(small_model(), home_with((4, 400, 25)))
    plan = planner.plan()
    assert overflow(plan) == 0
    assert fitting_neighbour(plan, True, planner.priced) is plan


def test_a_plan_that_does_not_fit_gives_up_layers_until_it_does() -> None:
    large = planner_of(small_model(), home_with((4, 400, 25)))
    layout = large.plan().layout
    small = planner_of(small_model(), home_with((0.065, 400, 25)))
    full = small.priced(layout)
    assert overflow(full) > 0
    plan = fitting_neighbour(full, True, small.priced)
    assert plan is not None
    assert plan.feasible
    assert HOST in (*plan.layout.layers, *plan.layout.experts)


def test_without_the_host_there_may_be_no_way() -> None:
    large = planner_of(small_model(), home_with((4, 400, 25)))
    layout = replace(large.plan().layout, order=(0,))
    small = planner_of(small_model(), home_with((0.05, 400, 25)))
    assert fitting_neighbour(small.priced(layout), False, small.priced) is None
