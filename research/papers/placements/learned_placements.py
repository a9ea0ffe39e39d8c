"""Placements of the seeds' figures: by hand, by `paper` and by `tuned` settings, with what each
device computes and what is copied; and the pictures that the slides have of them.

Load by device, forward and backward stacked, copies by kind, and placements drawn on the graph.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.lib.record import Row, show, write
from benchmarks.lib.workers import add_workers, jobs
from research import IMAGES, RESULTS
from research.papers.cases import Case, calibrated
from research.papers.hierarchical_table import SAMPLES as PLANNER_SAMPLES
from research.papers.placements import charts, on_graph
from research.papers.placements.placed import Placed, Wanted, place
from situate.solvers.learned.driver import SAMPLES

INCEPTION, NMT = Case("inception_v3", 4, "k80"), Case("nmt2", 2, "k80")
POST = ("post", "paper"), ("post", "tuned"), ("colocrl", "paper"), ("auto", "")
PLANNER = ("hierarchical", "paper"), ("auto", "")

WANTED: tuple[tuple[Case, tuple[tuple[str, str], ...]], ...] = (
    (INCEPTION, (("expert", ""), ("synchronous tower", ""), *POST)),
    (NMT, (("expert", ""), ("encoder apart", ""), *POST)),
    (Case("inception_v3", 2, "k40"), (("expert", ""), *PLANNER)),
    (Case("nmt2", 2, "k40"), (("expert", ""), ("encoder apart", ""), *PLANNER)),
    (Case("rnnlm", 2, "k40"), (("expert", ""), *PLANNER, ("colocrl", "paper"))),
)
"""By case, methods and their settings: K80s are Post's machines and ColocRL's here, K40s the
planner's."""


DRAWN = ("expert", "encoder apart", "post, tuned", "colocrl, paper")
"""Placements that are drawn on the graph."""


def main(arguments: list[str] | None = None) -> None:
    """Place, print, record and draw."""
    options = _parser().parse_args(arguments)
    wanted = list(_wanted(options))
    with jobs(options, place) as pool:
        result = [placed for _, placed in pool.each((run,) for run in wanted)]
    result.sort(key=lambda placed: wanted.index(placed.wanted))
    content = tables(result)
    for title, rows in content.items():
        show(title, rows)
    write(options.out, content, options=options)
    _draw(result, options.images)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [_name(case) for case, _ in WANTED]
    parser.add_argument("--rows", nargs="+", choices=names, default=names, metavar="CASE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="of the papers' samples")
    add_workers(parser, 2, "searches")
    parser.add_argument("--images", type=Path, default=IMAGES, metavar="FOLDER")
    out = RESULTS / "learned_placements.json"
    parser.add_argument("--out", type=Path, default=out, metavar="FILE")
    return parser


def _name(case: Case) -> str:
    """Such as `k80/nmt2/2`."""
    return f"{case.machine}/{case.name}"


def _wanted(options: argparse.Namespace) -> Iterator[Wanted]:
    for case, methods in WANTED:
        if _name(case) in options.rows:
            samples = round((SAMPLES if case.machine == "k80" else PLANNER_SAMPLES) * options.share)
            for method, settings in methods:
                yield Wanted(calibrated(case), method, settings, options.seed, samples)


def tables(placements: Iterable[Placed]) -> dict[str, list[Row]]:
    """Rows by title; a case's table of modules has a column for each of its devices."""
    content: dict[str, list[Row]] = {"placements": [], "load": [], "copies": []}
    for placed in placements:
        case = placed.wanted.case
        key = {"machine": case.machine, "case": case.name, "placement": placed.wanted.name}
        content["placements"].append(key | placed.summary)
        content["load"] += [key | row for row in placed.load]
        content["copies"] += [key | row for row in placed.copies]
        own = content.setdefault(f"modules of {_name(case)}", [])
        own += [{"placement": placed.wanted.name, **row} for row in placed.modules]
    return content


def _draw(placements: list[Placed], images: Path) -> None:
    """Pictures of the two cases that the slides draw, where they were placed."""
    for case in (INCEPTION, NMT):
        own = [
            p
            for p in placements
            if (p.wanted.case.machine, p.wanted.case.name) == ("k80", case.name)
        ]
        if own:
            charts.load(images / f"load_{case.network}.svg", own)
            charts.copies(images / f"copies_{case.network}.svg", own)
            drawn = [placed for placed in own if placed.wanted.name in DRAWN]
            on_graph.draw(images / f"placements_{case.network}.svg", drawn)


if __name__ == "__main__":
    main()
