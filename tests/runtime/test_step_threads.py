"""Threads that call one placed step, and other threads meanwhile."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.step import StartDevices  # noqa: E402
from tests.runtime.pairs import Pair  # noqa: E402
from tests.runtime.steps import train  # noqa: E402

SGD = partial(torch.optim.SGD, lr=0.1)
ADAM = partial(torch.optim.Adam, lr=0.01, betas=(0.8, 0.95), eps=1e-6)


# Concurrent calls, and state that returns between them.
@pytest.mark.parametrize("devices", [1, 2])
def test_threads_that_call_one_step_take_turns(processes: StartDevices, devices: int) -> None:
    pair = Pair("towers", ADAM)
    failed: list[BaseException] = []

    def calls() -> None:
        try:
            for _ in range(20):
                step(*pair.inputs)
        except BaseException as error:
            failed.append(error)

    with pair.placed(devices, processes if devices > 1 else None) as step:
        threads = [threading.Thread(target=calls, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failed == []
    for k in range(1, 41):
        train(pair.copy, pair.inputs, pair.loss, pair.copied, k)
    pair.assert_same()


def test_memory_is_that_of_its_own_step_whatever_other_threads_run() -> None:
    pair = Pair("towers", SGD)
    with pair.placed(1, None) as step:
        expected, run = step.memory(*pair.inputs), step._run
        thread = threading.Thread(target=step, args=pair.inputs)

        def interrupted(*batches: Any, **thread_name: Any) -> Any:
            returned = run(*batches, **thread_name)
            if thread_name:
                thread.start()
                thread.join(0.5)
            return returned

        step._run = interrupted  # type: ignore[method-assign]
        assert step.memory(*pair.inputs) == expected
        thread.join()


def test_there_is_no_state_to_bring_back_once_the_step_of_another_thread_has_failed() -> None:
    pair = Pair("towers", SGD)
    step = pair.placed(1, None)
    step._ahead, step._devices = True, Mock()
    step._devices.run.side_effect = lambda order: (thread.start(), thread.join(0.1), 1 / 0)
    failed: list[BaseException] = []

    def sync() -> None:
        try:
            step.sync()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=sync)
    with pytest.raises(ZeroDivisionError):
        step(*pair.inputs)
    thread.join()
    assert failed == []


def test_state_is_brought_back_between_two_steps_of_another_thread() -> None:
    pair = Pair("towers", SGD)
    step = pair.placed(1, None)
    step._ahead, step._devices = True, Mock()
    step._devices.run.side_effect = lambda order: (thread.start(), thread.join(0.1), errors())[2]
    thread = threading.Thread(target=step.sync)

    def errors() -> list[Any]:
        assert not step._devices.store.called
        return []

    step(*pair.inputs)
    thread.join()
    step._devices.store.assert_called_once()


@pytest.mark.parametrize("devices", [1, 2])
def test_a_step_of_another_thread_ends_before_it_is_closed(
    processes: StartDevices, devices: int
) -> None:
    pair = Pair("towers", SGD)
    with pair.placed(devices, processes if devices > 1 else None) as step:
        step(*pair.inputs)
        assert step._devices is not None
        run = step._devices.run

        def closed_meanwhile(order: Any) -> Any:
            thread.start()
            thread.join(0.2)
            assert step._devices is not None
            return run(order)

        step._devices.run = closed_meanwhile  # type: ignore[method-assign]
        thread = threading.Thread(target=step.close)
        step(*pair.inputs)
        thread.join()
        assert step._devices is None
    for k in (1, 2):
        train(pair.copy, pair.inputs, pair.loss, pair.copied, k)
    pair.assert_same()
