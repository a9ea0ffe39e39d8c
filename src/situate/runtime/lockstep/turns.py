"""Slices of an unplaced step side by side, as they must be where batch norms take their statistics
over all of them: each in a thread, one at a time, in turns up to the next norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, Protocol

from situate.errors import SituateError
from situate.runtime.processes.threads import threads as using

if TYPE_CHECKING:
    from torch.utils._python_dispatch import TorchDispatchMode

Run = Callable[[], Any]


class Place(Protocol):
    """The state of a model in some of the slices."""

    def put(self) -> None:
        """Let the model have it."""

    def take(self) -> None:
        """Note the one that it has now."""


class Lockstep:
    """Runs of slices that meet.

    Args:
        places: by slice, the state of the model in it.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._turns = [Semaphore(0) for _ in places]
        self._slice, self._met = 0, 0
        self._found: list[Any] = []
        self._made: Any = None
        self._error: BaseException | None = None

    def results(self, runs: Sequence[Run]) -> list[Any]:
        """The results of all slices; raises the first error of one."""
        found: list[Any] = [None for _ in runs]
        modes = _modes()

        def run(s: int) -> None:
            try:
                self._begin(s)
                with _as_here(*modes):
                    found[s] = runs[s]()
                self._end(s)
            except BaseException as error:
                self._stop(error)

        threads = [Thread(target=run, args=(s,), daemon=True) for s in range(len(runs))]
        for thread in threads:
            thread.start()
        self._turns[0].release()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return found

    def meet(self, found: Any, make: Callable[[list[Any]], Any]) -> Any:
        """The result of `make` for that which all slices have found.

        Raises:
            SituateError: some of them come to fewer meetings.
        """
        s, met = self._slice, self._met
        self._found.append(found)
        if s == len(self._places) - 1:
            self._check(len(self._found) == len(self._places))
            self._made, self._met = make(self._found), met + 1
            self._found = []
        self._end(s)
        self._begin(s)
        self._check(self._met == met + 1)
        return self._made

    def _begin(self, s: int) -> None:
        self._turns[s].acquire()
        if self._error is not None:
            raise self._error
        self._slice = s
        self._places[s].put()

    def _end(self, s: int) -> None:
        self._places[s].take()
        self._turns[(s + 1) % len(self._turns)].release()

    def _stop(self, error: BaseException) -> None:
        """Let all slices end."""
        self._error = self._error or error
        for turn in self._turns:
            turn.release()

    def _check(self, is_alike: bool) -> None:
        if not is_alike:
            raise SituateError("slices: they come to unequal numbers of batch norms")


def _modes() -> tuple[list[TorchDispatchMode], int]:
    """The modes that PyTorch keeps for the calling thread alone, and the number of threads."""
    import torch
    from torch.overrides import _get_current_function_mode_stack
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    of_functions = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    return [*of_functions, *_get_current_dispatch_mode_stack()], torch.get_num_threads()


@contextmanager
def _as_here(modes: Sequence[TorchDispatchMode], count: int) -> Iterator[None]:
    """A block in a thread that is as the one which these modes are of."""
    with ExitStack() as stack:
        stack.enter_context(using(count))
        for mode in modes:
            stack.enter_context(mode)
        yield
