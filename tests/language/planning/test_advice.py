"""The limit of a plan, and the changes that would help."""

from __future__ import annotations

import pytest

from situate.language.expert_kinds import with_kinds
from situate.language.layout import HOST
from situate.language.planning.advice import changes, idle_gpus, phase_shares
from tests.language.planning.homes import home_with, planner_of, small_model


# Shares of a phase add up, and name the device that takes the time.
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_shares_add_up(phase):
    planner = planner_of(small_model(), home_with((0.08, 400, 25), host=(8, 20)))
    shares = phase_shares(planner, planner.plan(), phase)
    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_divided_experts_take_their_part_of_the_time_in_host_memory():
    planner = planner_of(small_model(), home_with((4, 400, 25), host=(8, 20)))
    layout = planner.plan().layout
    parts = [
        phase_shares(planner, planner.priced(other), "decode").get("experts in host memory", 0.0)
        for other in (
            layout,
            with_kinds(planner.model, layout, 2, frozenset({"gate", "up"}), 0, HOST),
            with_kinds(planner.model, layout, 2, frozenset({"up"}), 0, HOST),
            with_kinds(planner.model, layout, 2, frozenset(), 0, HOST),
        )
    ]
    assert parts == sorted(parts)
    assert len({*parts}) == 4


def test_a_model_on_one_gpu_takes_its_time_there():
    planner = planner_of(small_model(), home_with((4, 400, 25)))
    shares = phase_shares(planner, planner.plan(), "decode")
    assert max(shares, key=lambda name: shares[name]) == "gpu0"


# Each change is priced by a plan of its own.
def test_a_home_short_of_memory_is_helped_by_another_card():
    planner = planner_of(small_model(False), home_with((0.07, 400, 25), host=(8, 5)))
    helpful = changes(planner, planner.plan())
    assert "another gpu0" in [change.name for change in helpful]
    assert all(change.gain > 1 for change in helpful)
    gains = [change.gain for change in helpful]
    assert gains == sorted(gains, reverse=True)


def test_a_model_on_a_gpu_is_not_helped_by_faster_host_memory():
    planner = planner_of(small_model(False), home_with((4, 400, 25)))
    names = [change.name for change in changes(planner, planner.plan())]
    assert "host memory twice as fast" not in names


def test_a_slow_card_is_left_out_with_the_price_of_using_it():
    planner = planner_of(small_model(False), home_with((4, 1000, 25), (4, 50, 1)))
    [idle] = idle_gpus(planner, planner.plan())
    assert idle.name == "gpu1"
    assert idle.gain < 1
