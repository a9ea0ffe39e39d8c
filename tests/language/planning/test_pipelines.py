"""Pipelines of ubatches on several GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.language.planning.pipelines import best_pipeline
from tests.language.planning.homes import all_layouts, home_with, planner_of, small_model


def planner_with(*gpus, **values):
    values = {"prompt": 1000, "reply": 20, "objective": "prefill"} | values
    planner = planner_of(small_model(False), home_with(*gpus), **values)
    return replace(planner, ubatches=(128,))


def pipeline(planner):
    arguments = (planner.capacity, planner.times, planner.work, planner.kinds, planner.ubatches)
    return best_pipeline(*arguments)


# Stages of equal time, and the plan that takes them.
def test_equal_gpus_have_equal_stages():
    planner = planner_with((4, 400, 25), (4, 400, 25))
    layout, seconds = pipeline(planner)
    assert sorted(layout.layers) == [0, 0, 1, 1]
    assert planner.priced(layout).seconds == seconds
    assert planner.plan().seconds <= seconds


def test_no_pipeline_is_faster():
    planner = planner_with((4, 400, 25), (4, 150, 25))
    layout, seconds = pipeline(planner)
    whole = [
        planner.priced(other).seconds
        for other in all_layouts(planner.model, 2, (128,))
        if set(other.layers) == set(other.experts) == {0, 1} and other.output == other.layers[-1]
    ]
    assert layout.order == (0, 1)
    assert seconds <= min(whole) * 1.02


def test_a_pipeline_is_proved_to_be_near_the_best():
    planner = planner_with((4, 400, 25), (4, 150, 25), prompt=4000, tokens=8192)
    plan = planner.plan()
    assert plan.seconds * 0.75 <= plan.bound <= plan.seconds


def test_a_gpu_without_room_for_its_share_holds_less():
    layout, _ = pipeline(planner_with((4, 100, 25), (0.09, 400, 25)))
    assert layout.layers.count(1) < 4
    assert planner_with((4, 100, 25), (0.09, 400, 25)).priced(layout).feasible


# Where nothing overlaps there is no pipeline.
@pytest.mark.parametrize("values", [{"objective": "decode"}, {"prompt": 100}])
def test_short_prompts_and_decoding_have_no_pipeline(values):
    assert pipeline(planner_with((4, 400, 25), (4, 400, 25), **values))[0] is None
    assert pipeline(planner_with((4, 400, 25)))[0] is None
