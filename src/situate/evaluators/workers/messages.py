"""Messages between a dispatcher and its workers, and their encoding as bytes.

Thousands of samples and measurements may travel per second. Tuples of bytes and numbers
encode them, which takes a quarter of the time of pickled arrays and classes. All other messages are
pickled, and none of them is a tuple.
"""

from __future__ import annotations

import io
import pickle
import sys
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import Measurements
from situate.version import VERSION


@dataclass(frozen=True)
class Hello:
    """The greeting of a worker.

    Attributes:
        host: name of its machine.
        version: of its situate.
    """

    host: str
    version: str = VERSION


@dataclass(frozen=True)
class Ready:
    """The message of a worker that has its evaluator.

    Attributes:
        place: its machine and devices, if workers are distinguished.
    """

    place: str = ""


@dataclass(frozen=True)
class Unready:
    """The message of a worker that cannot measure now, with the reason in one line."""

    reason: str


@dataclass(frozen=True)
class Task:
    """Samples to measure.

    Attributes:
        placements: (k, n), or another k rows that the evaluator takes.
        numbers: (k,) consecutive sample numbers.
        avoid: a place; a worker elsewhere measures them if there is one.
    """

    placements: NDArray[np.int32]
    numbers: NDArray[np.int64]
    avoid: str = ""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def name(self) -> str:
        """The samples' numbers, for people."""
        first, last = int(self.numbers[0]), int(self.numbers[-1])
        return f"sample {first}" if first == last else f"samples {first} to {last}"


@dataclass(frozen=True)
class Job:
    """A call of the workers' function.

    Attributes:
        arguments: of the call.
        name: for people.
    """

    arguments: tuple[Any, ...]
    name: str

    def __len__(self) -> int:
        return 1


Work = Task | Job
"""A task of a worker."""


@dataclass(frozen=True)
class Answer:
    """The value of a task (measurements, or the value of a call), or the error that it raised."""

    value: Any
    error: BaseException | None = None


@dataclass(frozen=True)
class Failure:
    """The event of a worker that did not answer, with the reason in one line."""

    reason: str


Message = Hello | Ready | Unready | Answer | Failure
"""A message of a worker, or the event of its loss."""


@dataclass
class Counts:
    """Statistics of the workers of a search.

    Attributes:
        completed: number of samples or jobs that each worker completed.
        failures: number of failures of each worker.
        again: number of tasks assigned again because their worker was slow or failed.
        left_out: workers that failed too often, with the last reason.
    """

    completed: dict[int, int] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    again: int = 0
    left_out: dict[int, str] = field(default_factory=dict)

    def failures_text(self, then: str = "what they were measuring was measured again") -> str:
        """One line on the failures and their remedy; empty without failures."""
        if not self.failures:
            return ""
        times = sum(self.failures.values())
        return f"workers failed {times} time{'s' * (times > 1)}, and {then}"


def encode(message: Work | Message) -> bytes:
    """A message as bytes.

    Raises:
        Exception: it cannot be pickled.
    """
    short = _compact_form(message)
    return pickle.dumps(short) if isinstance(short, tuple) else pack(message)


def pack(value: Any) -> bytes:
    """A value as bytes.

    Classes of a program that runs as a module (`python -m`) are written under the module's name: in
    another process `__main__` is another program.
    """
    stream = io.BytesIO()
    _Pickler(stream).dump(value)
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    """See `pack`."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type) and value.__module__ == "__main__":
            spec = sys.modules["__main__"].__spec__
            if spec is not None:
                return _import_attribute, (spec.name, value.__qualname__)
        # pickle then proceeds as usual.
        return NotImplemented


def _import_attribute(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def decode(message: bytes) -> Any:
    """The message, with arrays of its own."""
    parts = pickle.loads(message)  # noqa: S301
    if not isinstance(parts, tuple):
        return parts
    # An answer has two parts and a task five.
    return _answer_from_bytes(*parts) if len(parts) == 2 else _task_from_bytes(*parts)


def _compact_form(message: Work | Message) -> Any:
    if isinstance(message, Task):
        rows = message.placements
        if isinstance(rows, np.ndarray) and rows.dtype.kind in "iuf":
            first = int(message.numbers[0])
            return rows.tobytes(), rows.dtype.str, rows.shape, first, message.avoid
    elif isinstance(message, Answer) and type(message.value) is Measurements:
        measurements = message.value
        if not measurements.origins and not measurements.details:
            return measurements.seconds.tobytes(), measurements.outcome.tobytes()
    return message


def _task_from_bytes(
    rows: bytes, dtype: str, shape: tuple[int, ...], first: int, avoid: str
) -> Task:
    # `frombuffer` is read-only; an evaluator may write to its placements.
    placements = np.frombuffer(rows, dtype).reshape(shape).copy()
    return Task(placements, np.arange(first, first + shape[0]), avoid)


def _answer_from_bytes(seconds: bytes, outcome: bytes) -> Answer:
    # Arrays over the message's bytes would be read-only.
    measurements = Measurements(
        np.frombuffer(seconds, np.float64).copy(), np.frombuffer(outcome, np.uint8).copy()
    )
    return Answer(measurements)
