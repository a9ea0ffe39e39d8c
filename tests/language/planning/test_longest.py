"""The longest context that fits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.errors import PlanError
from situate.language.cache import PAD
from situate.language.planning.longest import longest_context
from tests.language.planning.homes import home_with, planner_of, small_model


def test_a_large_home_takes_the_models_own_context():
    planner = planner_of(small_model(), home_with((8, 400, 25)))
    assert longest_context(planner).options.context == 8192


def test_one_step_more_would_not_fit():
    home = home_with((0.07, 400, 25), host=(0.012, 50))
    planner = planner_of(small_model(False, quant="Q2_K"), home, prompt=100, reply=10)
    sizes = [memory / 1000 for memory in range(40, 200, 4)]
    homes = (home_with((size, 400, 25), host=(0.05, 50)) for size in sizes)
    planners = (replace(planner, home=home) for home in homes)
    planner = next(p for p in planners if p.fits() and not _with(p, 8192).fits())
    context = longest_context(planner).options.context
    assert _with(planner, context).fits()
    assert not _with(planner, context + PAD).fits()


def test_a_home_that_is_too_small_is_refused():
    planner = planner_of(small_model(), home_with((0.001, 400, 25), host=(0.001, 50)))
    with pytest.raises(PlanError, match="does not fit on home with 660 tokens"):
        longest_context(planner)


def _with(planner, context):
    return replace(planner, options=replace(planner.options, context=context))
