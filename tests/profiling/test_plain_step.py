"""The plain step: round trips, links, launches and clock readings."""

from __future__ import annotations

import time
from typing import Any

import pytest

from situate.profiling.plain_step import (
    FASTEST_LINK,
    MEETING_BYTES,
    REPETITIONS,
    TRANSFER_SIZES,
    OpNumbers,
    fit_link,
    measured_links,
    median_seconds,
    plain_step,
    round_trip_lines,
    round_trips,
    worker_clock,
)
from situate.runtime.device import StepRecord


# Round trips and their source.
def test_every_pair_sends_every_size_over_channels_of_its_own() -> None:
    trips = round_trips(3)
    assert {(trip.first, trip.second) for trip in trips} == {(0, 1), (0, 2), (1, 2)}
    assert [trip.number for trip in trips] == list(range(3 * (1 + len(TRANSFER_SIZES))))
    assert [trip.size for trip in trips] == [MEETING_BYTES, *TRANSFER_SIZES] * 3


def test_the_two_devices_of_a_trip_match() -> None:
    trip = round_trips(2)[1]
    first, second, other = (list(round_trip_lines(trip, device, 7, 40)) for device in (0, 1, 2))
    assert "send2(v); v = take3()" in first[-1]
    assert first[-1].startswith("began[40] = now()")
    assert second == ["v = take2(); send3(v)"]
    assert other == []


# Links fitted to synthetic times.
def test_a_link_is_found_again() -> None:
    latency, bandwidth = fit_link([1e-5 + size * (size > 64) / 4e9 for size in TRANSFER_SIZES])
    assert (latency, bandwidth) == pytest.approx((1e-5, 4e9))


def test_a_link_that_takes_no_longer_for_more_is_finite() -> None:
    assert fit_link([2e-5] + [1e-5] * (len(TRANSFER_SIZES) - 1)) == (2e-5, FASTEST_LINK)


def test_the_fastest_pair_pays_for_synchronisation_alone() -> None:
    trips = round_trips(3)
    base = {(0, 1): 1e-5, (0, 2): 3e-5, (1, 2): 2e-5}
    seconds = [2 * (base[t.first, t.second] + t.size / 1e9) for t in trips]
    links, synchronisation = measured_links(trips, seconds, ["a", "b", "c"])
    latency = {(link.source, link.target): link.latency for link in links}
    assert synchronisation == pytest.approx(1e-5, rel=0.01)
    assert latency["a", "b"] == latency["b", "a"] == 0.0
    assert latency["c", "a"] == pytest.approx(2e-5)
    assert all(link.bandwidth == pytest.approx(1e9, rel=1e-3) for link in links)


def test_lateness_at_the_first_trip_does_not_count() -> None:
    trips = round_trips(2)
    seconds = [2 * (1e-5 + t.size / 1e9 + (t.number == 0)) for t in trips]
    links, synchronisation = measured_links(trips, seconds, ["a", "b"])
    assert synchronisation == pytest.approx(1e-5, rel=0.01)
    assert links[0].latency == 0.0
    assert links[0].bandwidth == pytest.approx(1e9, rel=1e-3)


def test_one_device_has_no_links() -> None:
    assert measured_links(round_trips(1), [], ["a"]) == ([], 0.0)


def _executed(text: str, **names: Any) -> dict[str, Any]:
    names |= {"began": {}, "ended": {}, "now": time.perf_counter}
    exec(compile(text, "step", "exec"), names)
    names["step"]()
    return names


# Clocks and repeated things.
def test_only_one_thread_is_timed_by_its_own_clock() -> None:
    assert worker_clock(1) == "thread_time"
    assert worker_clock(2) == worker_clock(None) == "perf_counter"


def test_the_plain_step_times_trips_launches_and_looks_behind_the_ops() -> None:
    trips, calls = round_trips(2), []
    marks = OpNumbers(ops=10, trips=len(trips))
    channels = {f"send{k}": lambda v: None for k in range(2 * len(trips))}
    channels |= {f"take{k}": lambda: None for k in range(2 * len(trips))}
    text = plain_step(trips, 0, 3, marks, "thread_time")
    names = _executed(text, f3=lambda size: calls.append(size), **channels)
    assert sorted(names["ended"]) == list(range(10, 10 + len(trips) + 2))
    assert calls.count([1]) == REPETITIONS
    assert names["ended"].keys() == names["began"].keys()


def test_many_things_share_their_time() -> None:
    laps = [{0: StepRecord(0.0, 0.0, 0.0, {5: 1.0}, {5: 1.0 + s})} for s in (0.1, 0.2, 9.0, 0.3)]
    assert abs(median_seconds(laps, 0, 5) - 0.2 / REPETITIONS) < 1e-9
