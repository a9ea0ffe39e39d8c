"""A fixture of tests in which signals are held."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def handled() -> Iterator[list[int]]:
    """The signals that a handler of the user's has had."""
    came: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: came.append(number))
    yield came
    signal.signal(signal.SIGUSR1, before)
