"""The messages between a manager and its workers."""

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
    """A worker is there.

    Attributes:
        host: name of its machine.
        version: of its situate.
    """

    host: str
    version: str = VERSION


@dataclass(frozen=True)
class Ready:
    """A worker has its evaluator.

    Attributes:
        place: its machine and devices, where it matters who measures.
    """

    place: str = ""


@dataclass(frozen=True)
class Unready:
    """A worker that cannot measure now, with the reason in one line."""

    reason: str


@dataclass(frozen=True)
class Task:
    """Samples to measure.

    Attributes:
        placements: (k, n), or whatever else the evaluator takes k of.
        numbers: (k,) of the samples, ascending by one.
        avoid: a place; a worker that is elsewhere measures them if there is one.
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
    """A call of the function that workers were given.

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
    """The value of a task, which is its measurements or that of a call, or the error that was
    raised."""

    value: Any
    error: BaseException | None = None


@dataclass(frozen=True)
class Failure:
    """A worker that did not answer, with the reason in one line."""

    reason: str


Message = Hello | Ready | Unready | Answer | Failure
"""A message of a worker, or what is heard of one that is gone."""


@dataclass
class Counts:
    """A count of what happened to the workers of a search.

    Attributes:
        measured: samples that each worker measured, or jobs that it did.
        failures: how often each failed.
        again: tasks that were given to another worker because theirs was slow or failed.
        left_out: workers that failed too often, with the last reason.
    """

    completed: dict[int, int] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    again: int = 0
    left_out: dict[int, str] = field(default_factory=dict)

    def failures_text(self, then: str = "what they were measuring was measured again") -> str:
        """One line on the workers that failed, and what was done then; empty if none did."""
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
    """A value as bytes. Classes of a program that runs as a module (`python -m`) are written as
    those of the module: in another process `__main__` is another program."""
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
        return NotImplemented


def _import_attribute(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def decode(message: bytes) -> Any:
    """The message, with arrays of its own."""
    parts = pickle.loads(message)  # noqa: S301
    if not isinstance(parts, tuple):
        return parts
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
    placements = np.frombuffer(rows, dtype).reshape(shape).copy()
    return Task(placements, np.arange(first, first + shape[0]), avoid)


def _answer_from_bytes(seconds: bytes, outcome: bytes) -> Answer:
    measurements = Measurements(
        np.frombuffer(seconds, np.float64).copy(), np.frombuffer(outcome, np.uint8).copy()
    )
    return Answer(measurements)
