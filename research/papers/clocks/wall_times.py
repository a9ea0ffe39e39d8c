"""The papers' wall times beside those of the virtual clock, by which workers take the seconds of
the steps that they measure, and no time to set a placement up or for one that fails.

Most of its own time goes to the Hierarchical Planner and to ColocRL.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from benchmarks.lib.record import Row, record
from benchmarks.lib.workers import add_workers, jobs
from research import RESULTS
from research.papers.cases import Case, calibrated
from research.papers.clocks.batches import at_once
from situate.evaluators.measurements import Measurements
from situate.solvers import solve
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock, hours
from situate.solvers.learned.learner import Learning


@dataclass(frozen=True)
class Timed:
    """A search of a paper.

    Attributes:
        statement: the sentence of the paper.
        paper_h: hours of that, the most where they are several; None where there are none.
        case: a network that is nearest to the paper's.
        samples, controllers, workers: of the search; workers of each controller.
        counted: the paper says how many samples.
    """

    statement: str
    paper_h: float | None
    case: Case
    method: str
    samples: int
    controllers: int
    workers: int
    counted: bool = True


SEARCHES = (
    Timed(
        "Post: 2,400 placements on 12 workers",
        None,
        Case("inception_v3", 4, "k80"),
        "post",
        *(2400, 1, 12),
    ),
    Timed(
        "Hierarchical Planner: 1,000 iterations, at most three hours for the largest benchmark",
        3.0,
        Case("nmt8", 8, "k40"),
        "hierarchical",
        *(4000, 4, 4),
    ),
    Timed(
        "Spotlight: 20,000 placements on five machines within 500 minutes",
        500 / 60,
        Case("cifar_cnn", 4, "k80"),
        "spotlight",
        *(20_000, 1, 5),
    ),
    Timed(
        "ColocRL: 27 hours with 160 workers, by others' slides; placements not said",
        27.0,
        Case("nmt4", 4, "k80"),
        "colocrl",
        *(8000, 20, 8),
        counted=False,
    ),
)


def main(arguments: list[str] | None = None) -> None:
    """Search by the clock, print and record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, help="of each; default: the papers'")
    add_workers(parser, 1, "searches")
    options = parser.parse_args(arguments)
    with jobs(options, row, options.samples) as searches:
        rows = list(searches.map((search,) for search in SEARCHES))
    record("wall_times", {"searches": rows}, options=options, folder=RESULTS)


def row(samples: int | None, search: Timed) -> Row:
    """A search in `paper` settings, on one thread."""
    count = samples or search.samples
    clock_h = _hours(search, count)
    return {
        "paper": search.statement,
        "case": search.case.name,
        "samples": count,
        "workers": search.controllers * search.workers,
        "paper_h": search.paper_h,
        "clock_h": clock_h,
        "setup_s": _setup(search, count, clock_h),
    }


def _hours(search: Timed, samples: int) -> float:
    batches: list[Measurements] = []
    clock, several = VirtualClock(search.workers), search.controllers > 1
    learning = Learning(
        settings="paper",
        controllers=search.controllers if several else None,
        clock=clock if several else None,
        on_measured=lambda _, measured: batches.append(measured),
    )
    problem = calibrated(search.case).problem()
    result = solve(problem, search.method, evaluations=samples, threads=1, learning=learning)
    if result.asynchrony is not None:
        return result.asynchrony.seconds / 3600
    return float(hours(clock, at_once(batches, search.workers))[-1])


def _setup(search: Timed, samples: int, clock_h: float) -> float | None:
    """Seconds for setting each placement up with which the clock would have the paper's hours."""
    if search.paper_h is None or not search.counted or samples != search.samples:
        return None
    remaining = (search.paper_h - clock_h) * 3600
    return remaining * search.controllers * search.workers / samples


if __name__ == "__main__":
    main()
