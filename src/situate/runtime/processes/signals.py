"""Deferred signals, around operations that a handler's exception would leave half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

Handler = Callable[[int, FrameType | None], Any]

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGBREAK")
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
"""The signals that programs usually handle; checking all sixty would take longer than a small
step."""


class HeldSignals:
    """A block in which Python's signal handlers wait for its end.

    There they run in the order of arrival; the last exception is raised. Only the main thread runs
    handlers.
    """

    def __init__(self) -> None:
        self._waits = False
        self._handlers: dict[int, Handler] = {}
        self._arrivals: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> Self:
        self._waits = True
        # Python runs handlers in its main thread alone, and lets only that set them.
        if threading.current_thread() is threading.main_thread():
            self._replace_handlers()
        return self

    def _replace_handlers(self) -> None:
        current = ((number, signal.getsignal(number)) for number in SIGNALS)
        self._handlers = {number: h for number, h in current if callable(h) and self._defers(h)}
        try:
            for number in self._handlers:
                signal.signal(number, self._handle)
        except BaseException:
            self._restore_handlers()
            raise

    def _defers(self, handler: object) -> bool:
        """True for a handler that must wait."""
        return True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._waits:
            self._arrivals.append((number, frame))
            return
        # Another signal waits while a handler runs. If the handler raises, waiting goes on.
        self._waits = True
        self._handlers[number](number, frame)
        self._waits = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        exception = self._restore_handlers()
        arrivals, self._arrivals = self._arrivals, []
        for number, frame in arrivals:
            try:
                self._handlers[number](number, frame)
            except BaseException as reason:
                exception = reason
        if exception is not None:
            raise exception

    def _restore_handlers(self) -> BaseException | None:
        """Restore all handlers, even if restored ones raise meanwhile."""
        exception: BaseException | None = None
        while True:
            try:
                for number, handler in self._handlers.items():
                    # A handler that set another one meanwhile meant it: that one stays.
                    if signal.getsignal(number) == self._handle:
                        signal.signal(number, handler)
            except BaseException as reason:
                exception = reason
            else:
                return exception


class Commit(HeldSignals):
    """A block around a step, in which handlers wait from the commit on.

    Handlers run at once until parameters begin to change, the step has ended, or the undo of a
    failed step begins; later signals wait for the end. If a handler raises, the step has failed.
    Only the main thread runs handlers.

    Attributes:
        has_begun: parameters have changed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = False

    def __enter__(self) -> Self:
        self.has_begun = False
        super().__enter__()
        self._waits = False
        return self

    def begin(self) -> None:
        """Parameters change from now on."""
        self._waits = True
        self.has_begun = True

    def wait(self) -> None:
        """Handlers wait from now on."""
        self._waits = True

    def _defers(self, handler: object) -> bool:
        """A nested step leaves signals to the outer one."""
        return not isinstance(getattr(handler, "__self__", None), Commit)
