"""Signals wait while parameters change."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from situate.runtime.commit import Commit


@pytest.fixture
def handled() -> Any:
    """The signals that a handler of the user's has had."""
    came: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: came.append(number))
    yield came
    signal.signal(signal.SIGUSR1, before)


def test_before_it_begins_signals_are_handled_at_once(handled: list[int]) -> None:
    with Commit():
        signal.raise_signal(signal.SIGUSR1)
        assert handled == [signal.SIGUSR1]


def test_from_then_on_they_wait_for_the_end(handled: list[int]) -> None:
    with Commit() as commit:
        commit.begin()
        assert commit.begun
        signal.raise_signal(signal.SIGUSR1)
        assert handled == []
    assert handled == [signal.SIGUSR1]
    signal.raise_signal(signal.SIGUSR1)
    assert len(handled) == 2


def test_ctrl_c_is_raised_at_the_end() -> None:
    reached: list[str] = []

    def interrupted() -> None:
        with Commit() as commit:
            commit.begin()
            signal.raise_signal(signal.SIGINT)
            reached.append("end")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert reached == ["end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_each_time_is_a_new_one() -> None:
    commit = Commit()
    with commit:
        commit.begin()
    with commit:
        assert not commit.begun


def test_another_thread_has_no_signals_to_wait(handled: list[int]) -> None:
    began = []

    def work() -> None:
        with Commit() as commit:
            commit.begin()
            began.append(commit.begun)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert began == [True]
