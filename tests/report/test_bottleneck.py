"""Devices and channels that a step keeps busy in pipelined operation."""

from __future__ import annotations

from situate.data.rules import Rules
from situate.report.bottleneck import Busy, busiest
from tests.report.handmade import chain, schedule


def test_the_busiest_comes_first_and_is_the_time_between_steps() -> None:
    problem = chain(3, bandwidth=25)
    plan = schedule(problem, [0, 1, 1])
    assert busiest(problem, plan) == (
        Busy("channel", "gpu0->gpu1", 4),
        Busy("device", "gpu1", 2),
        Busy("device", "gpu0", 1),
    )
    assert busiest(problem, plan)[0].seconds == plan.period(problem)


def test_channels_without_contention_set_no_limit() -> None:
    problem = chain(3, bandwidth=25, rules="doppler")
    plan = schedule(problem, [0, 1, 1])
    assert {busy.kind for busy in busiest(problem, plan)} == {"device"}
    assert busiest(problem, plan)[0].seconds == plan.period(problem)


def test_where_devices_run_calls_channels_set_no_limit() -> None:
    problem = chain(3, bandwidth=25, rules=Rules("calls", "atomic", memory="persistent"))
    plan = schedule(problem, [0, 1, 1])
    assert {busy.kind for busy in busiest(problem, plan)} == {"device"}
    assert busiest(problem, plan)[0].seconds == plan.period(problem)
