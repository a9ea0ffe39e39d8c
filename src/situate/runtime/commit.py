"""The end of a step that one process runs alone: all gradients are there, parameters change."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Commit:
    """Around a step: from `begin` on, Python's signal handlers wait until the step is counted, so
    that Ctrl-C finds parameters as before the step or as after it.

    Attributes:
        begun: `begin` was called.
    """

    def __init__(self) -> None:
        self.begun = False
        self._handlers: dict[int, signal.Handlers | object] = {}
        self._came: list[int] = []

    def __enter__(self) -> Commit:
        self.begun = False
        return self

    def begin(self) -> None:
        """Parameters change from now on."""
        if threading.current_thread() is threading.main_thread():
            for number in signal.valid_signals():
                if callable(handler := signal.getsignal(number)):
                    self._handlers[number] = handler
                    signal.signal(number, self._wait)
        self.begun = True

    def _wait(self, number: int, frame: FrameType | None) -> None:
        self._came.append(number)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._handlers:
            number, handler = self._handlers.popitem()
            signal.signal(number, handler)  # type: ignore[arg-type]
        came, self._came = self._came, []
        for number in came:
            signal.raise_signal(number)
