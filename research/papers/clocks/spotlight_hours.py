"""Spotlight's experiment as its slides have it: 20,000 placements of the CIFAR-10 CNN, measured by
five machines of four GPUs; beside it ColocRL's method on the same groups, and it on ColocRL's.

Hours are those of the virtual clock, on which a trial takes its eleven steps and a set-up, and five
trials are measured at once, though Spotlight learns after each. The slides' 500 minutes give the
length of a set-up: the remainder after the steps. About six minutes of one core a search.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.lib.record import Row, show, write
from benchmarks.lib.workers import add_workers, jobs
from research import IMAGES, RESULTS
from research.papers.cases import Case
from research.papers.clocks import hour_curves
from research.papers.clocks.batches import ends, until_best
from research.papers.placements import shares
from research.papers.runs import BATCH, Run, learnt
from situate.evaluators.measurements import Measurements
from situate.solvers.learned.asynchronous.virtual_clock import VirtualClock

CASE = Case("cifar_cnn", 4, "k80")
SAMPLES = 20_000
MACHINES = 5
SEARCHES = (
    ("spotlight", "paper"),
    ("colocrl", "paper, prefix"),
    ("spotlight", "paper, colocation"),
)
"""The slides' own search, another method on its groups, and it on other groups."""

MINUTES = 500
"""That the slides' placements took."""


def main(arguments: list[str] | None = None) -> None:
    """Learn, print, record, and draw research/images/spotlight_hours.svg."""
    options = _parser().parse_args(arguments)
    wanted = [
        Run(CASE, method, settings, seed, options.samples)
        for method, settings in SEARCHES
        for seed in range(options.seeds)
    ]
    with jobs(options, searched) as pool:
        result = [rows for _, rows in pool.each((run,) for run in wanted)]
    result.sort(key=lambda rows: (rows[0]["settings"], rows[0]["method"], rows[0]["seed"]))
    content = {
        "runs": [run for run, _ in result],
        "modules": [row for _, modules in result for row in modules],
    }
    columns = [{k: v for k, v in run.items() if "curve" not in k} for run in content["runs"]]
    show("runs", columns)
    show("modules", content["modules"])
    write(options.out, content, options=options)
    hour_curves.draw(options.images / "spotlight_hours.svg", content["runs"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3, help="0, 1, ...; default: 3")
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"default: {SAMPLES}")
    add_workers(parser, 2, "runs")
    parser.add_argument("--images", type=Path, default=IMAGES, metavar="FOLDER")
    out = RESULTS / "spotlight_hours.json"
    parser.add_argument("--out", type=Path, default=out, metavar="FILE")
    return parser


def searched(run: Run) -> tuple[Row, list[Row]]:
    """The run with its hours, and the modules of the best placement."""
    begin = time.perf_counter()
    batches: list[Measurements] = []
    result = run.result(on_measured=lambda _, batch: batches.append(batch))
    samples = result.samples
    bare = VirtualClock(MACHINES)
    setup = _setup(ends(batches, bare)[-1], len(samples))
    clock = replace(bare, setup=setup)
    hours = ends(batches, clock)[[*range(BATCH - 1, len(samples), BATCH)]]
    key = {"method": run.method, "settings": run.settings, "seed": run.seed}
    figures = {
        **key,
        "samples": run.samples,
        "best": result.value,
        **learnt(samples, result.problem),
        **shares.summary(result.problem, result.schedule),
        "step_hours": float(ends(batches, bare)[-1]),
        "setup_seconds": setup,
        "best_hours": until_best(samples, batches, clock),
        "hours_curve": [float(f"{hour:.4g}") for hour in hours],
        "took": round(time.perf_counter() - begin, 1),
    }
    return figures, [key | row for row in shares.modules(result.problem, result.schedule)]


def _setup(hours: float, samples: int) -> float:
    """Seconds of set-up with which the samples take the slides' minutes, scaled to how many there
    are; at least 0."""
    wanted = MINUTES * 60 * samples / SAMPLES
    return max(0.0, (wanted - 3600 * hours) / math.ceil(samples / MACHINES))


if __name__ == "__main__":
    main()
