"""Signals during a step: what a handler raises must not find the model between two steps."""

from __future__ import annotations

from typing import Self

from situate.runtime.processes.signals import HeldSignals


class Commit(HeldSignals):
    """A block around a step. Python's signal handlers run at once until parameters begin to change,
    the step has ended, or one that failed begins to be undone; what comes then waits for the end.
    Once a handler has raised, the step has failed. Beside the main thread no handler runs.

    Attributes:
        begun: parameters have changed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.begun = False

    def __enter__(self) -> Self:
        self.begun = False
        super().__enter__()
        self._waits = False
        return self

    def begin(self) -> None:
        """Parameters change from now on."""
        self._waits = True
        self.begun = True

    def wait(self) -> None:
        """Handlers wait from now on."""
        self._waits = True

    def _takes(self, handler: object) -> bool:
        """A step inside a step leaves signals to the outer one."""
        return not isinstance(getattr(handler, "__self__", None), Commit)
