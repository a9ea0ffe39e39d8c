"""A worker: it gets an evaluator or a function once, and does task after task with it."""

from __future__ import annotations

import contextlib
import copy
import pickle
import socket
import traceback
from multiprocessing.connection import Connection
from typing import Any

from situate.errors import SituateError
from situate.evaluators.measurements import checked_measurements
from situate.evaluators.workers.messages import (
    Answer,
    Hello,
    Job,
    Ready,
    Unready,
    Work,
    decode,
    encode,
)
from situate.evaluators.workers.workers import Opens, Unfit


class Worker:
    """The work of a worker, wherever it runs."""

    def unpack(self, packed: bytes) -> Ready | Unready | Answer:
        """Unpack the evaluator or function, which the dispatcher sent; open an evaluator that needs
        it."""
        try:
            self._target: Any = pickle.loads(packed)  # noqa: S301
        except Exception as error:
            return Answer(None, _unpacking_error(error))
        return _open_evaluator(self._target) if isinstance(self._target, Opens) else Ready()

    def do(self, task: Work) -> Answer:
        """Measure samples or call the function; an exception becomes part of the answer."""
        try:
            return Answer(self._value(task))
        except Exception as error:
            return Answer(None, _portable_error(error))

    def _value(self, task: Work) -> Any:
        if isinstance(task, Job):
            return self._target(*task.arguments)
        answer = self._target.measure(task.placements, int(task.numbers[0]))
        return checked_measurements(self._target, answer, len(task))


def greeting() -> Hello:
    """The greeting of this process."""
    return Hello(socket.gethostname())


def main(connection: int) -> None:
    """Serve the process that started this one until it hangs up.

    Args:
        connection: descriptor of a socket. Only that process holds the other end, so its pickled
            messages are trusted.
    """
    worker = Worker()
    with Connection(connection) as manager, contextlib.suppress(EOFError, OSError):
        manager.send_bytes(encode(greeting()))
        manager.send_bytes(encode(worker.unpack(manager.recv_bytes())))
        while True:
            manager.send_bytes(encode(worker.do(decode(manager.recv_bytes()))))


def _open_evaluator(evaluator: Opens) -> Ready | Unready | Answer:
    try:
        return Ready(evaluator.open())
    except Unfit as error:
        return Unready(str(error))
    except Exception as error:
        return Answer(None, _portable_error(error))


def _unpacking_error(error: Exception) -> SituateError:
    """The error of a worker that cannot unpack its evaluator."""
    return SituateError(
        f"workers: the evaluator cannot be unpacked there ({error}): define its class in a module "
        "that workers can import, not in the program that is run"
    )


def _portable_error(error: Exception) -> Exception:
    """An error that can be sent, with its traceback as a note. One that cannot be pickled becomes a
    `RuntimeError` with the same text."""
    where = "".join(traceback.format_exception(error))
    try:
        pickle.dumps(error)
        copy.copy(error)  # fails where unpickling it would
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"in the process of a worker:\n{where}")
    return error
