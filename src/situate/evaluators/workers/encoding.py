"""Messages as bytes, between processes that trust one another.

Samples and what was measured of them, of which thousands may come a second, go as tuples of bytes
and numbers, which take a quarter of the time that their arrays and classes do. All else is pickled
as it is; no message is a tuple.
"""

from __future__ import annotations

import io
import pickle
import sys
from importlib import import_module
from typing import Any

import numpy as np

from situate.evaluators.measurements import Measurements
from situate.evaluators.workers.messages import Answer, Message, Task, Work


def encoded(message: Work | Message) -> bytes:
    """A message as bytes.

    Raises:
        Exception: it cannot be pickled.
    """
    short = _short(message)
    return pickle.dumps(short) if isinstance(short, tuple) else packed(message)


def packed(value: Any) -> bytes:
    """A value as bytes. Classes of a program that runs as a module (`python -m`) are written as
    those of the module: in another process `__main__` is another program."""
    written = io.BytesIO()
    _Pickler(written).dump(value)
    return written.getvalue()


class _Pickler(pickle.Pickler):
    """See `packed`."""

    def reducer_override(self, given: Any) -> Any:
        if isinstance(given, type) and given.__module__ == "__main__":
            spec = sys.modules["__main__"].__spec__
            if spec is not None:
                return _attribute, (spec.name, given.__qualname__)
        return NotImplemented


def _attribute(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def decoded(message: bytes) -> Any:
    """The message, with arrays of its own."""
    found = pickle.loads(message)  # noqa: S301
    if not isinstance(found, tuple):
        return found
    return _answer(*found) if len(found) == 2 else _task(*found)


def _short(message: Work | Message) -> Any:
    if isinstance(message, Task):
        rows = message.placements
        if isinstance(rows, np.ndarray) and rows.dtype.kind in "iuf":
            first = int(message.numbers[0])
            return rows.tobytes(), rows.dtype.str, rows.shape, first, message.avoid
    elif isinstance(message, Answer) and type(message.value) is Measurements:
        measured = message.value
        if not measured.origins and not measured.details:
            return measured.seconds.tobytes(), measured.outcome.tobytes()
    return message


def _task(rows: bytes, dtype: str, shape: tuple[int, ...], first: int, avoid: str) -> Task:
    placements = np.frombuffer(rows, dtype).reshape(shape).copy()
    return Task(placements, np.arange(first, first + shape[0]), avoid)


def _answer(seconds: bytes, outcome: bytes) -> Answer:
    measured = Measurements(
        np.frombuffer(seconds, np.float64).copy(), np.frombuffer(outcome, np.uint8).copy()
    )
    return Answer(measured)
