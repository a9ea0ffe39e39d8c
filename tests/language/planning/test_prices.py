"""Sums over layers equal the seconds of the simulator."""

from __future__ import annotations

import random

import pytest

from situate.language.cache import CacheOptions
from situate.language.layer_seconds import Timetable
from situate.language.memory import is_pipelined
from situate.language.planning.prices import PriceList
from situate.language.planning.workload import OBJECTIVES, Workload, speed_of
from tests.language.planning.homes import all_layouts, home_with, small_model


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("mixture", [False, True])
def test_the_prices_of_a_layout_are_its_seconds(objective, mixture):
    model, home = small_model(mixture, layers=3), home_with((1, 400, 4), (1, 900, 25))
    options, work = CacheOptions(1024), Workload(600, 60, objective)
    layouts = [one for one in all_layouts(model, 2, (512, 128)) if not is_pipelined(one)]
    times = Timetable(model, home, options)
    prices = PriceList(times, work)
    for layout in random.Random(0).sample(layouts, 60):
        first = layout.order[0] if layout.op_offload and layout.order else None
        table = prices.prices(layout.ubatch, layout.host_cache, first)
        seconds = speed_of(times, layout, work).objective
        assert table.of(layout) == pytest.approx(seconds, rel=1e-12)
