"""Jobs: calls of one function with many arguments, by concurrent workers."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import FunctionType
from typing import Any

from situate.errors import SituateError
from situate.evaluators.workers.dispatch import Dispatch
from situate.evaluators.workers.messages import Counts, Job, pack
from situate.evaluators.workers.processes import ProcessWorkers
from situate.evaluators.workers.workers import Terms, Workers


@dataclass(frozen=True)
class Function:
    """A function of a module, which is sent by name.

    Attributes:
        module: in which workers find it.
        name: in the module.
        shared: first arguments of every call, sent to each worker once.
    """

    module: str
    name: str
    shared: tuple[Any, ...]

    @classmethod
    def of(cls, function: Callable[..., Any], shared: tuple[Any, ...]) -> Function:
        """The function with its shared arguments.

        Raises:
            SituateError: workers cannot import it.
        """
        name = getattr(function, "__qualname__", type(function).__name__)
        module = function.__module__
        if module == "__main__":
            # `python -m` leaves the module's real name in its spec; a script has no spec.
            spec = sys.modules[module].__spec__
            module = "" if spec is None else spec.name
        if not module or not isinstance(function, FunctionType) or "<" in name:
            raise SituateError(
                f"workers: {name!r} cannot be imported by them: define it as a function of a "
                "module, and run the program as a module (python -m)"
            )
        return cls(module, name, shared)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*self.shared, *arguments)

    def job(self, arguments: tuple[Any, ...]) -> Job:
        """A call, named after the function and its arguments."""
        return Job(arguments, f"{self.name}{reprlib.repr(arguments)}")


class Jobs:
    """Calls a function by workers; a context manager that ends them.

    Each call counts once, and another worker repeats it if one fails. A value depends on the
    arguments alone, so neither the number of workers nor their machines change the results.

    Args:
        function: of a module, with arguments that can be pickled.
        workers: their number; the first call starts them.
        shared: first arguments of all calls.
        limit: most seconds of a call; None for no limit.
        alike: calls take similar times, so one that takes far longer has hung.
        start: makes the workers; None for processes of this machine, or for this process alone if
            there is one worker.

    Raises:
        SituateError: fewer than one worker, a function that workers cannot import, or shared
            arguments that cannot be sent.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        workers: int,
        *,
        shared: tuple[Any, ...] = (),
        limit: float | None = None,
        alike: bool = False,
        start: Callable[[bytes], Workers] | None = None,
    ) -> None:
        if workers < 1:
            raise SituateError(f"workers: must be at least 1, got {workers}")
        self._function = Function.of(function, shared)
        self._dispatch: Dispatch | None = None
        if start is not None or workers > 1:
            pool = (start or ProcessWorkers)(pack(self._function))
            self._dispatch = Dispatch(pool, workers, Terms(limit=limit), alike)

    @property
    def counts(self) -> Counts:
        """Statistics of the workers so far; empty without workers."""
        return Counts() if self._dispatch is None else self._dispatch.counts

    def ready(self, seconds: float) -> int:
        """See `Dispatch.ready`."""
        return 1 if self._dispatch is None else self._dispatch.ready(seconds)

    def each(
        self, calls: Iterable[tuple[Any, ...]], terms: Terms | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yields the number and the value of each call, as they end.

        Args:
            calls: arguments of each call.
            terms: of these calls.

        Raises:
            NoWorkers, SituateError: see `Dispatch.answers`.
            Exception: the exception that a call raised.
        """
        if self._dispatch is None:
            return ((number, self._function(*call)) for number, call in enumerate(calls))
        return self._dispatch.answers([self._function.job(call) for call in calls], terms)

    def map(self, calls: Iterable[tuple[Any, ...]], terms: Terms | None = None) -> Iterator[Any]:
        """Yields the values in the order of the calls; see `each`."""
        early: dict[int, Any] = {}
        next_number = 0
        for number, value in self.each(calls, terms):
            # Values that arrive ahead of their turn wait here.
            early[number] = value
            while next_number in early:
                yield early.pop(next_number)
                next_number += 1

    def here(self) -> Jobs:
        """The same jobs, with all calls in this process."""
        jobs = copy(self)
        jobs._dispatch = None
        return jobs

    def close(self) -> None:
        """End the workers."""
        if self._dispatch is not None:
            self._dispatch.close()

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
