"""The planner against all layouts of small models, and its errors."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from situate.errors import PlanError, SituateError
from situate.language.cache import CacheOptions
from situate.language.config import config_of
from situate.language.expert_kinds import divided_layers
from situate.language.layer_seconds import Timetable
from situate.language.layout import HOST
from situate.language.planning.capacity import memory_of
from situate.language.planning.planner import Planner
from situate.language.planning.workload import OBJECTIVES, Workload
from situate.language.reading import model_of_config
from situate.language.speed import decode_seconds, prefill_seconds
from tests.language.planning.homes import (
    MIXTURE,
    all_layouts,
    home_with,
    homes,
    planner_of,
    small_model,
)


def least_seconds(planner):
    """The seconds of the fastest of all layouts that fit, priced without the planner."""
    model, home, work = planner.model, planner.home, planner.work
    best, times = float("inf"), Timetable(model, home, planner.options)
    for layout in all_layouts(model, len(home.accelerators), planner.ubatches):
        options = replace(planner.options, ubatch=layout.ubatch)
        prefill = decode = 0.0
        if work.objective != "decode":
            prefill = prefill_seconds(times, layout, work.prompt)
        if work.objective != "prefill":
            decode = decode_seconds(times, layout, work.prompt + work.reply // 2)
        seconds = work.seconds(prefill, decode)
        if seconds >= best:
            continue
        memory = memory_of(model, layout, options, home)
        pairs = zip(memory, home.processors, strict=True)
        if all(p.total + p.margin <= d.memory for p, d in pairs if p.total or p.margin):
            best = seconds
    return best


# The planner's seconds and its bound surround those of the best of all layouts.
@settings(max_examples=6, deadline=None)
@given(home=homes(most=2), mixture=st.booleans(), objective=st.sampled_from(OBJECTIVES[:3]))
def test_no_layout_is_faster_than_the_plan(home, mixture, objective):
    planner = planner_of(small_model(mixture, layers=3), home, objective=objective)
    planner = replace(planner, ubatches=(512,))
    # Buffers of all layouts are by rules; where exact ones do not fit, they are searched with.
    layout, _ = planner._search(planner._layouts_in_turn())
    assume(layout is None or planner.priced(layout).feasible)
    plan, least = planner.plan(), least_seconds(planner)
    assert plan.feasible
    assert plan.bound <= least * (1 + 1e-9)
    assert plan.seconds <= 1.01 * least
    # Experts of one layer on both sides may be faster than all layouts with whole experts.
    assert plan.layout.moved or least <= plan.seconds * (1 + 1e-9)


def test_experts_on_two_tiny_cards_are_placed_within_a_hundredth_of_the_best():
    home = home_with((0.06, 200.0, 1.0), (0.07, 200.0, 1.0), host=(8, 20.0))
    planner = replace(planner_of(small_model(True, layers=3), home), ubatches=(512,))
    assert planner.plan().seconds == pytest.approx(least_seconds(planner), rel=0.01)


def test_a_kind_of_experts_fills_room_that_no_layer_of_them_fits_in():
    values = MIXTURE | {"num_hidden_layers": 3, "moe_intermediate_size": 2048}
    model = model_of_config(config_of(values), "Q4_K_M", "wide")
    planner = replace(planner_of(model, home_with((0.07, 1000, 25), host=(8, 2))), ubatches=(512,))
    plan = planner.plan()
    assert plan.feasible
    assert divided_layers(plan.layout)
    assert plan.seconds < 0.95 * least_seconds(planner)


@pytest.mark.parametrize("mixture", [False, True])
def test_one_gpu_with_room_holds_everything(mixture):
    model = small_model(mixture)
    plan = planner_of(model, home_with((4, 1000, 25), (4, 200, 4))).plan()
    assert set(plan.layout.layers) == {0} == set(plan.layout.experts)
    assert plan.layout.output == 0
    assert plan.layout.order == (0,)
    # Of two GPUs in a pipeline only the mean stage is bounded.
    assert plan.gap < 0.01
    assert planner_of(model, home_with((4, 1000, 25))).plan().gap == 0.0


def test_experts_leave_a_gpu_that_is_too_small_and_the_other_tensors_stay():
    model = small_model()
    plan = planner_of(model, home_with((0.075, 1000, 25))).plan()
    assert set(plan.layout.layers) == {0}
    assert HOST in plan.layout.experts


def test_a_slow_card_is_left_out_and_used_if_it_is_required():
    planner = planner_of(small_model(), home_with((4, 1000, 25), (4, 20, 1)))
    assert planner.plan().layout.order == (0,)
    forced = replace(planner, required=2).plan()
    assert 1 in (*forced.layout.layers, forced.layout.output)
    assert forced.seconds > planner.plan().seconds


def test_a_home_without_gpus_plans_on_the_host():
    plan = planner_of(small_model(), home_with()).plan()
    assert set(plan.layout.layers) == {HOST}
    assert plan.layout.order == ()


def test_host_memory_limits_a_plan():
    model = small_model(quant="Q8_0")
    planner = planner_of(model, home_with((0.2, 30, 25), host=(0.055, 200)))
    plan = planner.plan()
    assert plan.free[-1] >= 0
    assert replace(planner, home=home_with((0.2, 30, 25), host=(8, 200))).plan().seconds < (
        plan.seconds
    )


def test_the_same_request_gives_the_same_plan():
    planner = planner_of(small_model(), home_with((0.075, 1000, 25), (0.06, 300, 4)))
    assert planner.plan() == planner.plan()


# Impossible requests.
@pytest.mark.parametrize(
    ("home", "tokens", "message"),
    [
        (home_with(host=(0.001, 50)), 1024, "small needs .* and the devices of home have"),
        (home_with((0.01, 1, 1), host=(0.03, 50)), 1024, "small "),
        (home_with((1, 1, 1)), 512, "do not hold prompt and reply of 660"),
        (home_with((1, 1, 1)), 9000, "9,000 tokens, and small ends at 8,192"),
        (home_with(*[(1, 1, 1)] * 9), 1024, "has 9 GPUs, and 8 are the most"),
    ],
)
def test_impossible_requests_are_refused_in_one_line(home, tokens, message):
    with pytest.raises(SituateError, match=message) as error:
        planner_of(small_model(), home, tokens=tokens).plan()
    assert "\n" not in str(error.value)


def test_misfits_are_plan_errors():
    with pytest.raises(PlanError, match=re.escape("--cache-type q8_0")):
        planner_of(small_model(), home_with(host=(0.001, 50))).plan()


def test_slots_divide_the_context():
    model = small_model()
    options, work = CacheOptions(1024, slots=4), Workload(600, 60)
    with pytest.raises(SituateError, match="256 tokens a slot"):
        Planner(model, home_with((1, 1, 1)), options, work).plan()
