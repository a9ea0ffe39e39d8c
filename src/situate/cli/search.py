"""Running a search at a terminal: its progress on stderr, and Ctrl-C as an order to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from situate.cli.progress import SearchProgress
from situate.cli.terminal import note, working
from situate.data.problem import Problem
from situate.results.result import Overtime, Result
from situate.solvers import solve
from situate.solvers.learned.learner import Learning

OVERTIME: dict[Overtime, str] = {
    "first plan": "{0}: the first plan took longer than --time-limit {1:g}; it is the answer, "
    "after {2:.1f} s",
    "no plan": "{0}: no plan fitted when --time-limit {1:g} was over, nor after {2:.1f} s",
}
"""Notes of searches that took longer than their limit: the method, the limit, the seconds."""


@dataclass(frozen=True)
class Budget:
    """The limits of a search, and its seed; None as in `solve`."""

    time_limit: float | None
    evaluations: int | None
    seed: int
    threads: int | None


def search(
    problem: Problem,
    method: str,
    budget: Budget,
    learning: Learning | None = None,
    progress: SearchProgress | None = None,
) -> Result:
    """The best plan `method` finds within `budget`, with progress on a terminal."""
    follow = (progress or SearchProgress(problem, method)).update
    with working(f"{method}: searching; Ctrl-C keeps the best plan so far") as show:
        result = solve(
            problem,
            method,
            time_limit=budget.time_limit,
            evaluations=budget.evaluations,
            seed=budget.seed,
            threads=budget.threads,
            on_progress=lambda found: show(follow(found)),
            learning=learning,
        )
    if result.overtime is not None and budget.time_limit is not None:
        note(OVERTIME[result.overtime].format(method, budget.time_limit, result.seconds))
    return result


@dataclass
class Interrupt:
    """A flag that Ctrl-C sets."""

    came: bool = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Remembers Ctrl-C, which a search takes as its order to stop with the best it has."""
    interrupt = Interrupt()

    def remember(number: int, frame: FrameType | None) -> None:
        interrupt.came = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
