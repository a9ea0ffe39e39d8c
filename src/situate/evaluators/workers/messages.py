"""The messages between a manager and its workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.version import VERSION


@dataclass(frozen=True)
class Hello:
    """A worker is there.

    Attributes:
        host: name of its machine.
        version: of its situate.
    """

    host: str
    version: str = VERSION


@dataclass(frozen=True)
class Ready:
    """A worker has its evaluator.

    Attributes:
        place: its machine and devices, where it matters who measures.
    """

    place: str = ""


@dataclass(frozen=True)
class Unready:
    """A worker that cannot measure now, with the reason in one line."""

    reason: str


@dataclass(frozen=True)
class Task:
    """Samples to measure.

    Attributes:
        placements: (k, n), or whatever else the evaluator takes k of.
        numbers: (k,) of the samples, ascending by one.
        avoid: a place; a worker that is elsewhere measures them if there is one.
    """

    placements: NDArray[np.int32]
    numbers: NDArray[np.int64]
    avoid: str = ""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def name(self) -> str:
        """The samples' numbers, for people."""
        first, last = int(self.numbers[0]), int(self.numbers[-1])
        return f"sample {first}" if first == last else f"samples {first} to {last}"


@dataclass(frozen=True)
class Job:
    """A call of the function that workers were given.

    Attributes:
        arguments: of the call.
        name: for people.
    """

    arguments: tuple[Any, ...]
    name: str

    def __len__(self) -> int:
        return 1


Work = Task | Job
"""A task of a worker."""


@dataclass(frozen=True)
class Answer:
    """The value of a task, which is its measurements or that of a call, or the error that was
    raised."""

    value: Any
    error: BaseException | None = None


@dataclass(frozen=True)
class Failure:
    """A worker that did not answer, with the reason in one line."""

    reason: str


Message = Hello | Ready | Unready | Answer | Failure
"""A message of a worker, or what is heard of one that is gone."""


@dataclass
class Counts:
    """A count of what happened to the workers of a search.

    Attributes:
        measured: samples that each worker measured, or jobs that it did.
        failures: how often each failed.
        again: tasks that were given to another worker because theirs was slow or failed.
        left_out: workers that failed too often, with the last reason.
    """

    measured: dict[int, int] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    again: int = 0
    left_out: dict[int, str] = field(default_factory=dict)

    def failures_text(self, then: str = "what they were measuring was measured again") -> str:
        """One line on the workers that failed, and what was done then; empty if none did."""
        if not self.failures:
            return ""
        times = sum(self.failures.values())
        return f"workers failed {times} time{'s' * (times > 1)}, and {then}"
