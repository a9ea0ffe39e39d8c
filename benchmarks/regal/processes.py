"""Graphs planned side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from multiprocessing import get_context
from typing import TypeVar

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


class Processes(AbstractContextManager["Processes"]):
    """So many processes; with one, all is done here."""

    def __init__(self, count: int) -> None:
        # They begin anew: PyTorch's threads outlive no fork.
        begins = get_context("spawn")
        self._pool = ProcessPoolExecutor(count, mp_context=begins) if count > 1 else None

    def map(self, function: Callable[[Task], Outcome], tasks: Sequence[Task]) -> list[Outcome]:
        """The outcomes of a function, which a module holds, of all tasks in their order."""
        return list(self._pool.map(function, tasks) if self._pool else map(function, tasks))

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
