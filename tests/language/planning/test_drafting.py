"""Draft models: their place, their memory, and their gain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.errors import PlanError, SituateError
from situate.language.planning.drafting import Draft, home_beside, places, with_draft
from situate.language.planning.workload import Drafting
from tests.language.planning.homes import MIXTURE, home_with, planner_of, small_model

DRAFT = Draft(small_model(False, layers=1), "draft.gguf", acceptance=0.9)


# Places: one GPU of each kind, and the host.
def test_a_draft_may_lie_on_a_gpu_of_each_kind_or_on_the_host():
    planner = planner_of(small_model(), home_with((4, 400, 25), (4, 400, 25), (2, 900, 25)))
    drafts = {one.device: one for one in places(planner, DRAFT)}
    assert set(drafts) == {"gpu0", "gpu2", "cpu"}
    assert drafts["gpu2"].seconds < drafts["gpu0"].seconds < drafts["cpu"].seconds
    assert drafts["gpu0"].bytes > DRAFT.model.layers[0].size
    assert drafts["gpu0"].host_bytes > 0 == drafts["cpu"].host_bytes


def test_its_bytes_are_no_longer_free():
    planner = planner_of(small_model(), home_with((4, 400, 25)))
    [on_gpu, on_host] = places(planner, DRAFT)
    before, after = planner.home, home_beside(planner.home, on_gpu)
    assert after.accelerators[0].memory == before.accelerators[0].memory - on_gpu.bytes
    assert after.host.memory == before.host.memory - on_gpu.host_bytes
    assert home_beside(before, on_host).host.memory == before.host.memory - on_host.bytes
    with pytest.raises(PlanError, match="the draft is on 'gpu7'"):
        home_beside(before, replace(on_gpu, device="gpu7"))


# Gains: the plan with a draft has the bound of its own, and a good draft pays.
def test_a_good_draft_makes_a_large_model_decode_faster():
    planner = planner_of(small_model(False, layers=30), home_with((4, 40, 25)))
    drafted = with_draft(planner, DRAFT)
    plan, alone = drafted.plan(), planner.plan()
    assert plan.speed.decode < alone.speed.decode
    assert plan.bound == pytest.approx(plan.seconds, rel=1e-6)
    bad = with_draft(planner, replace(DRAFT, acceptance=0.0)).plan()
    assert bad.speed.decode > alone.speed.decode


def test_a_draft_goes_where_the_request_is_fastest():
    planner = planner_of(small_model(False, layers=30), home_with((4, 40, 25), (1, 30, 25)))
    drafted = with_draft(planner, DRAFT)
    seconds = {
        one.device: replace(
            planner,
            home=home_beside(planner.home, one),
            work=replace(planner.work, drafting=one),
        )
        .plan()
        .seconds
        for one in places(planner, DRAFT)
    }
    device = drafted.work.drafting.device
    assert seconds[device] == min(seconds.values()) == drafted.plan().seconds


def test_a_pass_yields_the_guesses_that_are_right_and_one_token():
    drafting = Drafting("m", "m", "gpu0", 0, 0, tokens=3, acceptance=0.5)
    assert drafting.tokens_a_pass == 1 + 0.5 + 0.25 + 0.125
    assert replace(drafting, acceptance=1.0).tokens_a_pass == 4


# Impossible drafts.
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tokens": 0}, "draft tokens: must be 1 to 64, got 0"),
        ({"acceptance": 1.5}, "draft acceptance: must be 0 to 1, got 1.5"),
    ],
)
def test_bad_settings_are_refused(values, message):
    with pytest.raises(SituateError, match=message):
        Drafting("m", "m", "gpu0", 0, 0, **values)


def test_another_vocabulary_is_refused():
    large = small_model()
    other = replace(large.sizes, vocabulary=large.sizes.vocabulary + 129)
    with pytest.raises(SituateError, match="has a vocabulary of 4,096 tokens, and small one of"):
        DRAFT.check(replace(large, sizes=other))
    DRAFT.check(replace(large, sizes=replace(other, vocabulary=MIXTURE["vocab_size"] + 128)))


def test_a_home_without_room_for_the_draft_is_refused():
    planner = planner_of(small_model(False), home_with(host=(0.2, 50)))
    planner.plan()
    with pytest.raises(PlanError, match="no device of home holds it beside small"):
        with_draft(planner, replace(DRAFT, model=small_model(False, layers=64)))
