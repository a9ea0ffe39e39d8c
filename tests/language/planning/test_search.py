"""Settings, their bounds, and the search through them."""

from __future__ import annotations

from math import inf

from situate.language.layout import HOST
from tests.language.planning.homes import home_with, planner_of, small_model


def search_of(*gpus, **values):
    return planner_of(small_model(), home_with(*gpus, **values))._layouts_in_turn()


# A relaxed setting is below the same setting solved, and infinite only where nothing fits.
def test_relaxed_settings_are_below_solved_ones():
    search = search_of((0.075, 400, 4), (0.08, 900, 25))
    for setting in search.settings():
        relaxed = search.relaxed(setting)
        layout, seconds, bound = search.solved(setting)
        # Layouts wholly on GPUs belong to settings without parts on the host.
        if layout is not None and setting.host_parts == (HOST in layout.layers + layout.experts):
            assert relaxed <= seconds * (1 + 1e-9)
            assert bound <= seconds * (1 + 1e-9)
        if relaxed == inf:
            assert layout is None


def test_bounds_without_limits_of_memory_are_below_those_with_them():
    search = search_of((0.075, 400, 4), (0.08, 900, 25))
    for setting in search.settings():
        assert search._without_limits(setting) <= search.relaxed(setting) * (1 + 1e-9)


def test_bounds_of_settings_are_computed_once_for_both_kinds_of_buffers():
    search = search_of((0.075, 400, 4))
    exactly = search.exactly()
    search.best()
    assert exactly.capacity.exact
    assert not search.capacity.exact
    assert exactly.best()[1] <= exactly.seconds(exactly.best()[0])
    assert exactly._relaxed is search._relaxed


def test_a_limit_leaves_faster_layouts_alone():
    search = search_of((0.075, 400, 4))
    layout, bound = search.best()
    seconds = search.seconds(layout)
    assert 0.9 * seconds < bound <= seconds
    assert search.best(limit=seconds)[0] is None
    assert search.best(limit=1.01 * seconds)[0] == layout


def test_a_home_without_gpus_has_one_setting_a_ubatch():
    assert len(list(search_of().settings())) == 2
