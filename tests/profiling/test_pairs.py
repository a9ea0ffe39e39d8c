"""Round trips, and the links that they make."""

from __future__ import annotations

import pytest

from situate.profiling.pairs import (
    FASTEST_LINK,
    MEETING_BYTES,
    SIZES,
    lines,
    link_of,
    links,
    round_trips,
)


def test_every_pair_sends_every_size_over_channels_of_its_own() -> None:
    trips = round_trips(3)
    assert {(trip.first, trip.second) for trip in trips} == {(0, 1), (0, 2), (1, 2)}
    assert [trip.number for trip in trips] == list(range(3 * (1 + len(SIZES))))
    assert [trip.size for trip in trips] == [MEETING_BYTES, *SIZES] * 3


def test_what_one_sends_the_other_takes() -> None:
    trip = round_trips(2)[1]
    first, second, other = (list(lines(trip, device, 7, 40)) for device in (0, 1, 2))
    assert "send2(v); v = take3()" in first[-1]
    assert first[-1].startswith("began[40] = now()")
    assert second == ["v = take2(); send3(v)"]
    assert other == []


def test_a_link_is_found_again() -> None:
    latency, bandwidth = link_of([1e-5 + size * (size > 64) / 4e9 for size in SIZES])
    assert (latency, bandwidth) == pytest.approx((1e-5, 4e9))


def test_a_link_that_takes_no_longer_for_more_is_finite() -> None:
    assert link_of([2e-5] + [1e-5] * (len(SIZES) - 1)) == (2e-5, FASTEST_LINK)


def test_the_fastest_pair_pays_for_synchronisation_alone() -> None:
    trips = round_trips(3)
    base = {(0, 1): 1e-5, (0, 2): 3e-5, (1, 2): 2e-5}
    seconds = [2 * (base[t.first, t.second] + t.size / 1e9) for t in trips]
    found, synchronisation = links(trips, seconds, ["a", "b", "c"])
    latency = {(link.source, link.target): link.latency for link in found}
    assert synchronisation == pytest.approx(1e-5, rel=0.01)
    assert latency["a", "b"] == latency["b", "a"] == 0.0
    assert latency["c", "a"] == pytest.approx(2e-5)
    assert all(link.bandwidth == pytest.approx(1e9, rel=1e-3) for link in found)


def test_who_came_late_to_the_first_trip_does_not_count() -> None:
    trips = round_trips(2)
    seconds = [2 * (1e-5 + t.size / 1e9 + (t.number == 0)) for t in trips]
    found, synchronisation = links(trips, seconds, ["a", "b"])
    assert synchronisation == pytest.approx(1e-5, rel=0.01)
    assert found[0].latency == 0.0
    assert found[0].bandwidth == pytest.approx(1e9, rel=1e-3)


def test_one_device_has_no_links() -> None:
    assert links(round_trips(1), [], ["a"]) == ([], 0.0)
