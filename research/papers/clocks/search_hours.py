"""The tables' searches by a virtual clock: Post's Table 1 on 12 workers, the planner's on four
controllers of four workers that update one policy asynchronously, beside one that waits.

Post waits for all of its twelve, so its findings are the same on any number of workers, and its
rows have hours alone. A worker takes the eleven steps of a placement and no set-up.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.lib.record import Row, show, write
from benchmarks.lib.workers import add_workers, jobs
from research import RESULTS
from research.papers import published
from research.papers.cases import Case, calibrated
from research.papers.clocks.search import Search, row
from research.papers.hierarchical_table import SAMPLES as PLANNER_SAMPLES
from situate.solvers.learned.driver import SAMPLES

CASES = (
    *(Case(row.network, row.gpus, "k80") for row in published.POST),
    *(Case(row.network, row.gpus, "k40") for row in published.HIERARCHICAL),
)

POST_WORKERS = 12
CONTROLLERS, WORKERS = 4, 4


def main(arguments: list[str] | None = None) -> None:
    """Learn, print and record."""
    options = _parser().parse_args(arguments)
    result: list[Row] = []
    searches = list(_searches(options))
    with jobs(options, row) as pool:
        for number, (_, outcome) in enumerate(pool.each((search,) for search in searches), start=1):
            print(f"{number} of {len(searches)}: {outcome}", flush=True)
            result.append(outcome)
            write(options.out, {"searches": sorted(result, key=_key)}, options=options)
    show("searches", sorted(result, key=_key))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [_name(case) for case in CASES]
    parser.add_argument("--rows", nargs="+", choices=names, default=names, metavar="ROW")
    parser.add_argument("--settings", nargs="+", default=["paper", "tuned"])
    parser.add_argument("--seeds", type=int, default=1, help="0, 1, ...; default: 1")
    parser.add_argument("--share", type=float, default=1.0, help="of the papers' samples")
    add_workers(parser, 2, "searches")
    out = RESULTS / "search_hours.json"
    parser.add_argument("--out", type=Path, default=out, metavar="FILE")
    return parser


def _name(case: Case) -> str:
    """Such as `k80/resnet50/2`."""
    return f"{case.machine}/{case.name}"


def _searches(options: argparse.Namespace) -> Iterator[Search]:
    for case in map(calibrated, (case for case in CASES if _name(case) in options.rows)):
        for settings in options.settings:
            for seed in range(options.seeds):
                yield from _of(case, settings, seed, options.share)


def _of(case: Case, settings: str, seed: int, share: float) -> Iterator[Search]:
    if case.machine == "k80":
        yield Search(case, "post", settings, seed, round(SAMPLES * share), POST_WORKERS)
        return
    samples = round(PLANNER_SAMPLES * share)
    for controllers in (0, CONTROLLERS):
        yield Search(case, "hierarchical", settings, seed, samples, WORKERS, controllers)


def _key(row: Row) -> tuple[int, str, int, int]:
    where = next(i for i, case in enumerate(CASES) if _name(case) == _of_row(row))
    return where, row["settings"], row["controllers"], row["seed"]


def _of_row(row: Row) -> str:
    return f"{row['machine']}/{row['case']}"


if __name__ == "__main__":
    main()
