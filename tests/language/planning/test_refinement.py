"""Small changes of layouts on small homes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.language.layout import HOST, Layout
from situate.language.planning.refinement import refined
from tests.language.planning.homes import home_with, planner_of, small_model


def refine(planner, layout):
    search = planner._layouts_in_turn()
    return refined(layout, search.capacity.exactly(), search.seconds)


# Every kind of change is found on a home with room for all of the model.
@pytest.mark.parametrize(
    ("layers", "experts", "output", "values"),
    [
        ((HOST, 0, 0, 0), (HOST, 0, 0, 0), 0, {}),
        ((0, 0, 0, 0), (0, HOST, 0, HOST), 0, {}),
        ((0, 0, 0, 0), (0, 0, 0, 0), HOST, {}),
        ((0, 0, 0, 0), (0, 0, 0, 0), 0, {"host_cache": True}),
        ((0, 0, 1, 1), (0, 0, 1, 1), 1, {"order": (0, 1)}),
    ],
)
def test_everything_moves_to_the_fastest_gpu(layers, experts, output, values):
    planner = planner_of(small_model(), home_with((4, 1000, 25), (4, 100, 4)))
    layout = refine(planner, Layout(values.pop("order", (0,)), layers, experts, output, **values))
    assert set(layout.layers) == set(layout.experts) == {0} == {layout.output}
    assert layout.order == (0,)
    assert not layout.host_cache


def test_a_layout_stays_within_memory():
    planner = planner_of(small_model(), home_with((0.075, 1000, 25)))
    layout = refine(planner, Layout((0,), (0,) * 4, (HOST,) * 4, 0))
    plan = planner.priced(layout)
    assert plan.feasible
    assert 0 < layout.experts.count(0) < 4


def test_the_order_of_gpus_is_reversed_where_the_other_one_computes_for_the_host():
    home = home_with((0.2, 400, 1), (0.2, 400, 25), host=(8, 5))
    planner = planner_of(small_model(), home, prompt=900, reply=10)
    layout = Layout((0, 1), (0, 0, 1, 1), (HOST,) * 4, 1)
    seconds = planner._layouts_in_turn().seconds
    assert seconds(refine(planner, layout)) < seconds(replace(layout, order=(0, 1)))
