"""Cuts of equal layers over a fast and a slow GPU."""

from __future__ import annotations

import numpy as np

from situate.language.layout import HOST
from situate.language.planning.cuts import Cutter, Loads, Room
from situate.language.planning.prices import Prices


def cutter(gpus=2, layers=4, **values):
    """Equal layers of 10 bytes, of which 6 are experts; the host is the slowest device."""
    speeds = np.array([1.0, 2.0, 10.0])[[*range(gpus), 2]]
    home = np.tile(speeds, (layers, 1))
    away = np.tile(speeds / 2 + 5.0, (layers, 1))
    prices = Prices(home, away, np.zeros((gpus + 1,) * 2), np.zeros(gpus + 1))
    room = np.array(values.pop("room", [100.0] * gpus))
    loads = Loads(np.full(layers, 4), np.full(layers, 6))
    rest = {"host_parts": True, "first": None, "kinds": [*range(gpus)]} | values
    return Cutter(prices, loads, Room(room, room, room, room), **rest)


def test_the_fastest_gpu_takes_all_layers_that_fit():
    cut = cutter().best()
    assert cut.route == ((HOST, 0), (0, 4))
    assert cut.seconds == 4.0
    assert not cut.away


def test_layers_that_do_not_fit_go_to_the_next_gpu():
    cut = cutter(room=[20.0, 100.0]).best()
    counts = {gpu: end for gpu, end in cut.route if gpu != HOST}
    assert set(counts) == {0, 1}
    assert cut.seconds == 2 * 1.0 + 2 * 2.0


def test_experts_leave_before_their_layers():
    cut = cutter(gpus=1, room=[28.0]).best()
    assert cut.route == ((HOST, 0), (0, 4))
    assert cut.away == {0, 1}


def test_without_parts_on_the_host_nothing_may_be_left():
    assert cutter(room=[20.0, 10.0], host_parts=False).best() is None
    assert cutter(room=[20.0, 20.0], host_parts=False).best().seconds == 6.0


def test_divided_experts_bound_whole_ones_from_below():
    for room in range(10, 45, 3):
        whole, divided = (cutter(gpus=1, room=[float(room)], exact=e).best() for e in (True, False))
        assert divided.seconds <= whole.seconds + 1e-12


def test_a_required_gpu_holds_something():
    cut = cutter(required=2).best()
    assert 1 in {cut.output, *(gpu for gpu, _ in cut.route)}


def test_the_first_gpu_may_hold_no_layer():
    slow = cutter(first=1)
    assert slow.best().lead == 1
    assert {gpu for gpu, _ in slow.best().route} == {HOST, 0}


def test_equal_gpus_are_used_in_their_order():
    cut = cutter(room=[20.0, 20.0], kinds=[0, 0], host_parts=False).best()
    assert [gpu for gpu, _ in cut.route] == [HOST, 0, 1]
