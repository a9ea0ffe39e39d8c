"""Running a search at a terminal: its progress on stderr, and Ctrl-C as an order to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from situate.cli.terminal import working
from situate.problem import Problem
from situate.report.units import value_text
from situate.result import Progress, Result
from situate.solvers import solve


@dataclass(frozen=True)
class Budget:
    """What a search may spend, and its seed; None as in `solve`."""

    time_limit: float | None
    evaluations: int | None
    seed: int
    threads: int | None


def search(problem: Problem, method: str, budget: Budget) -> Result:
    """The best plan `method` finds within `budget`, with progress on a terminal."""
    with _progress(problem, method) as on_progress:
        return solve(
            problem,
            method,
            time_limit=budget.time_limit,
            evaluations=budget.evaluations,
            seed=budget.seed,
            threads=budget.threads,
            on_progress=on_progress,
        )


@contextmanager
def _progress(problem: Problem, method: str) -> Iterator[Callable[[Progress], None]]:
    with working(f"{method}: searching; Ctrl-C keeps the best plan so far") as show:
        yield lambda progress: show(_progress_text(problem, method, progress))


def _progress_text(problem: Problem, method: str, progress: Progress) -> str:
    value = value_text(progress.value, problem.objective, problem.graph.unit)
    bound = value_text(progress.lower_bound, problem.objective, problem.graph.unit)
    state = "" if progress.feasible else ", does not fit yet"
    return (
        f"{method}: best {value}{state}, bound {bound}, {progress.evaluations:,} evaluations, "
        f"{progress.seconds:.0f} s; Ctrl-C keeps it"
    )


@dataclass
class Interrupt:
    """Whether Ctrl-C came."""

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
