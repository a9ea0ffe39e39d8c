"""Handlers wait around operations that must not be interrupted."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from situate.runtime.processes.signals import Commit, HeldSignals


# Blocks in which all handlers wait.
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


# Steps, in which handlers wait from the commit on.
def test_before_it_begins_signals_are_handled_at_once(handled: list[int]) -> None:
    with Commit():
        signal.raise_signal(signal.SIGUSR1)
        assert handled == [signal.SIGUSR1]


def test_from_then_on_they_wait_for_the_end(handled: list[int]) -> None:
    with Commit() as commit:
        commit.begin()
        assert commit.has_begun
        signal.raise_signal(signal.SIGUSR1)
        assert handled == []
    assert handled == [signal.SIGUSR1]
    signal.raise_signal(signal.SIGUSR1)
    assert len(handled) == 2


def test_ctrl_c_during_a_commit_is_raised_at_the_end() -> None:
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


def test_signals_after_ctrl_c_wait_for_the_undo(handled: list[int]) -> None:
    undone: list[bool] = []

    def step() -> None:
        with Commit() as commit:
            try:
                signal.raise_signal(signal.SIGINT)
            except BaseException:
                signal.raise_signal(signal.SIGUSR1)
                commit.wait()
                undone.append(handled == [])
                raise

    with pytest.raises(KeyboardInterrupt):
        step()
    assert undone == [True]
    assert handled == [signal.SIGUSR1]


def test_all_that_waited_are_handled_though_one_raises(handled: list[int]) -> None:
    def step() -> None:
        with Commit() as commit:
            commit.begin()
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGUSR1)

    with pytest.raises(KeyboardInterrupt):
        step()
    assert handled == [signal.SIGUSR1]


# Handlers are restored whatever they raise.
def test_handlers_come_back_though_one_that_is_back_raises(
    handled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    restore = signal.signal

    def interrupted(number: int, handler: Any) -> Any:
        previous = restore(number, handler)
        if handler is signal.default_int_handler:
            signal.raise_signal(signal.SIGINT)
        return previous

    def step() -> None:
        with Commit():
            monkeypatch.setattr(signal, "signal", interrupted)

    before = signal.getsignal(signal.SIGUSR1)
    with pytest.raises(KeyboardInterrupt):
        step()
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGUSR1) is before


def test_handlers_come_back_though_one_raises_while_they_are_taken(
    handled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    take = signal.signal

    def interrupted(number: int, handler: Any) -> Any:
        if number == signal.SIGUSR1:
            raise KeyboardInterrupt
        return take(number, handler)

    monkeypatch.setattr(signal, "signal", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Commit().__enter__()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# Nested steps, repeated steps and other threads.
def test_a_step_within_a_step_leaves_the_outer_ones_handlers() -> None:
    with Commit() as outer:
        with Commit():
            pass
        assert signal.getsignal(signal.SIGINT) == outer._handle
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_each_time_is_a_new_one() -> None:
    commit = Commit()
    with commit:
        commit.begin()
    with commit:
        assert not commit.has_begun


def test_another_thread_has_no_signals_to_wait(handled: list[int]) -> None:
    began = []

    def work() -> None:
        with Commit() as commit:
            commit.begin()
            began.append(commit.has_begun)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert began == [True]
