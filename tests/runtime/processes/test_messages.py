"""Messages between a step and its workers."""

from __future__ import annotations

import pickle

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.processes.messages import Failed, Run, Store, failed_with  # noqa: E402


@pytest.mark.parametrize("message", [Run(1, True, [{"lr": 0.1}]), Store(2), Failed("error", "no")])
def test_messages_are_plain_data(message: object) -> None:
    again = pickle.loads(pickle.dumps(message))  # noqa: S301 - made in this line
    assert again == message


@pytest.mark.parametrize(
    "error",
    [MemoryError(), torch.OutOfMemoryError("CUDA"), RuntimeError("can't allocate memory: 1 byte")],
)
def test_all_that_say_so_are_out_of_memory(error: Exception) -> None:
    assert failed_with(error).reason == "out_of_memory"


def test_every_other_error_says_its_kind() -> None:
    assert failed_with(ValueError("no")) == Failed("error", "ValueError: no")
