"""Tasks that workers do side by side, a graph each."""

from __future__ import annotations

from typing import Any, Protocol


class Task(Protocol):
    """Whatever can be sent to a worker and run there."""

    def run(self) -> Any:
        """Its outcome."""


def outcome(task: Task) -> Any:
    """The call that workers make."""
    return task.run()
