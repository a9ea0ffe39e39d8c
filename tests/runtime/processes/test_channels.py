"""Tensors that cross from one device to another."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate import _core  # noqa: E402
from situate.runtime.processes.channels import ABORT, Aborted, Channels  # noqa: E402

CPU = torch.device("cpu")


class Pair:
    """Two devices with two channels."""

    def __init__(self) -> None:
        self.flags = _core.threads.make_flags(np.zeros(3, np.uint32))
        self.slots = [torch.zeros(4), torch.zeros(2, 3).t()]
        self.sends, self.takes = (Channels(self.flags, self.slots, CPU) for _ in range(2))
        self.sends.step = self.takes.step = 1


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_what_is_taken_is_what_was_sent(pair: Pair) -> None:
    pair.sends.sender(0)(torch.arange(4.0))
    pair.sends.sender(1)(torch.arange(6.0).view(3, 2))
    assert pair.takes.taker(1)().tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert pair.takes.taker(0)().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_it_is_read_where_it_was_written(pair: Pair) -> None:
    pair.sends.sender(0)(torch.arange(4.0))
    assert pair.takes.taker(0)().data_ptr() == pair.slots[0].data_ptr()


def test_what_was_written_there_is_taken_once_it_is_posted(pair: Pair) -> None:
    pair.sends.memory(0).fill_(3.0)
    pair.sends.poster(0)()
    assert pair.takes.taker(0)().tolist() == [3.0] * 4


def test_who_only_looks_does_not_wait_awake() -> None:
    spin = 30.0
    began = time.perf_counter()
    assert not _core.threads.make_flags(np.zeros(1, np.uint32), spin).wait(ABORT, 1, 0.0)
    assert time.perf_counter() - began < spin


def test_who_takes_waits_for_this_step(pair: Pair) -> None:
    pair.sends.sender(0)(torch.zeros(4))
    pair.sends.step = pair.takes.step = 2
    later = threading.Timer(0.05, lambda: pair.sends.sender(0)(torch.full((4,), 2.0)))
    later.start()
    assert pair.takes.taker(0)().tolist() == [2.0] * 4
    assert pair.takes.waited > 0
    assert pair.sends.waited == 0
    later.join()


def test_who_waits_hears_that_the_step_is_given_up(pair: Pair) -> None:
    later = threading.Timer(0.05, lambda: pair.flags.post(ABORT, 1))
    later.start()
    with pytest.raises(Aborted):
        pair.takes.taker(0)()
    later.join()


def test_a_step_given_up_earlier_does_not_matter(pair: Pair) -> None:
    pair.flags.post(ABORT, 1)
    pair.sends.step = pair.takes.step = 2
    pair.sends.sender(0)(torch.ones(4))
    assert pair.takes.taker(0)().tolist() == [1.0] * 4
