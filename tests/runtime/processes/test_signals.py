"""Handlers wait for the end of what must not be left half done."""

from __future__ import annotations

import signal
import threading

import pytest

from situate.runtime.processes.commit import Commit
from situate.runtime.processes.signals import HeldSignals


def test_all_that_came_are_handled_at_the_end(handled: list[int]) -> None:
    with HeldSignals():
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
        assert handled == []
    assert handled == [signal.SIGUSR1] * 2


def test_ctrl_c_is_raised_at_the_end() -> None:
    reached: list[str] = []

    def interrupted() -> None:
        with HeldSignals():
            signal.raise_signal(signal.SIGINT)
            reached.append("end")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert reached == ["end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("outer", [HeldSignals, Commit])
def test_one_inside_another_keeps_both(outer: type[HeldSignals], handled: list[int]) -> None:
    with outer():
        with HeldSignals():
            signal.raise_signal(signal.SIGUSR1)
            assert handled == []
        assert handled == ([] if outer is HeldSignals else [signal.SIGUSR1])
    assert handled == [signal.SIGUSR1]


def test_other_threads_change_no_handler(handled: list[int]) -> None:
    def wait() -> None:
        with HeldSignals():
            signal.raise_signal(signal.SIGUSR1)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert handled == [signal.SIGUSR1]
