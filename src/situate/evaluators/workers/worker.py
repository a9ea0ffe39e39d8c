"""A worker: it is given an evaluator once, and measures samples with it, task after task."""

from __future__ import annotations

import contextlib
import copy
import pickle
import socket
from multiprocessing.connection import Connection

from situate.errors import SituateError
from situate.evaluators.measurements import Evaluator
from situate.evaluators.workers.messages import Answer, Hello, Task


class MeasuringWorker:
    """The measuring part of a worker, wherever it runs.

    Args:
        evaluator: what it measures with.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def measure(self, task: Task) -> Answer:
        """Measure the samples of a task; what the evaluator raises is part of the answer."""
        try:
            first = int(task.numbers[0])
            return Answer(self._evaluator.measure(task.placements, first))
        except Exception as error:
            return Answer(None, _portable(error))


def hello() -> Hello:
    """The greeting of this process."""
    return Hello(socket.gethostname())


def main(connection: int) -> None:
    """Serve the process that started this one until it hangs up.

    Args:
        connection: descriptor of a socket, whose other end that process alone holds: what is
            unpickled comes from there.
    """
    with Connection(connection) as manager, contextlib.suppress(EOFError, OSError):
        manager.send(hello())
        try:
            worker = MeasuringWorker(manager.recv())
        except Exception as error:
            manager.send(Answer(None, not_unpacked(error)))
            return
        while True:
            manager.send(worker.measure(manager.recv()))


def not_unpacked(error: Exception) -> SituateError:
    """The error of a worker that cannot unpack its evaluator."""
    return SituateError(
        f"workers: the evaluator cannot be unpacked there ({error}): define its class in a module "
        "that workers can import, not in the program that is run"
    )


def _portable(error: Exception) -> Exception:
    """An error that can be sent; one that cannot becomes one of its words."""
    try:
        pickle.dumps(error)
        copy.copy(error)  # fails where unpickling it would
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
