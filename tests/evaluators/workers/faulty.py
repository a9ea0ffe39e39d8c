"""Evaluators and jobs that do harm in the process of a worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import Measurements


@dataclass
class Counting:
    """Measures a sample by its number, and writes down that it did, and where."""

    folder: Path
    seconds: float = 0.0

    name = "counting"
    at_once = 1
    finalists = 0

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        Path(self.folder, f"{first}-{os.getpid()}-{time.monotonic_ns()}").touch()
        self.harm(first)
        time.sleep(self.seconds)
        seconds = (first + 1.0) * (1 + placements.sum(axis=1) / 100)
        return Measurements(seconds, np.zeros(len(placements), np.uint8))

    def harm(self, number: int) -> None:
        """None."""

    def attempts(self, number: int) -> int:
        """The number of times that a sample was begun."""
        return len(list(self.folder.glob(f"{number}-*")))


@dataclass
class KilledAt(Counting):
    """Its process is killed at some sample, as often as is said."""

    number: int = 0
    times: int = 1

    def harm(self, number: int) -> None:
        if number == self.number and self.attempts(number) <= self.times:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class HangsAt(KilledAt):
    """It hangs there."""

    def harm(self, number: int) -> None:
        if number == self.number and self.attempts(number) <= self.times:
            time.sleep(600)


@dataclass
class Straggling(Counting):
    """The first sample ends after this one has begun."""

    last: int = 0

    def harm(self, number: int) -> None:
        while number == 0 and not self.attempts(self.last):
            time.sleep(0.02)


@dataclass
class Obeying(Counting):
    """It does each harm that was ordered, once."""

    def order(self, harm: str) -> None:
        """The next sample is harmed: `kill`, `hang` or `fail`."""
        Path(self.folder, harm).touch()

    def ordered(self) -> list[str]:
        """The orders that nobody has followed yet."""
        return [harm for harm in ("fail", "hang", "kill") if Path(self.folder, harm).exists()]

    def harm(self, number: int) -> None:
        for harm in self.ordered():
            try:
                Path(self.folder, harm).unlink()
            except FileNotFoundError:  # another worker was first
                continue
            if harm == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if harm == "hang":
                time.sleep(600)
            raise Unsendable(1, 2)


class Unsendable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


@dataclass
class RaisesAt(Counting):
    """It raises an error there, which cannot be sent."""

    number: int = 0

    def harm(self, number: int) -> None:
        if number == self.number:
            raise Unsendable(1, 2)


@dataclass
class EndsAt(Counting):
    """Its process ends there, of itself."""

    number: int = 0
    ending: type[BaseException] = SystemExit

    def harm(self, number: int) -> None:
        if number == self.number:
            raise self.ending(3)


@dataclass
class AnswersOtherwise(Counting):
    """It returns something else than measurements."""

    answer: Callable[[], Any] = tuple

    def measure(self, placements: NDArray[np.int32], first: int) -> Any:
        return self.answer()


def square(offset: int, harm: Counting, number: int) -> int:
    """A job that takes the longer, the smaller its number is."""
    Path(harm.folder, f"{number}-{os.getpid()}-{time.monotonic_ns()}").touch()
    harm.harm(number)
    time.sleep(0.02 * (8 - number))
    return offset + number**2


def lock() -> Any:
    """Something that cannot be sent."""
    return threading.Lock()


def too_few() -> Measurements:
    """Measurements of no placements."""
    return Measurements(np.empty(0), np.empty(0, np.uint8))
