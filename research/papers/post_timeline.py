"""Fig. 3 of Post: the timelines of Inception-V3 and NMT, placed by experts and by Post."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from benchmarks.lib.record import ROOT, Row, show, write
from research import IMAGES, RESULTS
from research.papers import lanes, published
from research.papers.cases import Case, calibrated
from research.papers.placements import shares
from situate.data.problem import Problem
from situate.results.result import Result
from situate.solvers import solve
from situate.writers import perfetto

CASES: dict[tuple[str, int], lanes.Parts] = {
    ("inception_v3", 4): {
        "stem": "stem",
        "35 x 35": "mixed_5",
        "17 x 17": "mixed_6|auxiliary",
        "8 x 8": "mixed_7|head",
    },
    ("nmt2", 2): {
        "encoder": "encoder|source_embedding",
        "attention": "keys|decoder.attention",
        "decoder": "decoder|target_embedding",
        "softmax": "softmax|combine",
    },
}
"""The paper's figure shows Inception-V3 on several GPUs and NMT on two."""


def main(arguments: list[str] | None = None) -> None:
    """Learn, record, draw research/images/post_timeline_NETWORK.svg, and write a trace of each."""
    options = _parser().parse_args(arguments)
    tables: dict[str, list[Row]] = {"placements": []}
    pictures = []
    for (network, gpus), parts in CASES.items():
        case = calibrated(Case(network, gpus, "k80"))
        problem, results = _placements(case, options)
        tables["placements"] += [_row(case, *item) for item in results.items()]
        tables[case.name] = [
            {"placement": name, **row}
            for name, result in results.items()
            for row in shares.modules(problem, result.schedule)
        ]
        pictures.append((case, problem, results, parts))
    for title, rows in tables.items():
        show(title, rows)
    write(options.out, tables, options=options)
    for picture in pictures:
        _draw(*picture, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="the best is drawn; default: 5")
    parser.add_argument("--samples", type=int, default=2400, help="a run; default: 2400")
    parser.add_argument("--images", type=Path, default=IMAGES, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=RESULTS / "post_timeline.json", metavar="FILE")
    parser.add_argument("--traces", type=Path, default=ROOT / "build" / "papers", metavar="FOLDER")
    return parser


def _placements(case: Case, options: argparse.Namespace) -> tuple[Problem, dict[str, Result]]:
    problem = case.problem()
    expert = solve(problem, "expert", evaluations=1, threads=1)
    outcome = (
        solve(problem, "post", evaluations=options.samples, seed=seed, threads=1)
        for seed in range(options.seeds)
    )
    return problem, {"expert": expert, "post": min(outcome, key=lambda result: result.value)}


def _row(case: Case, placement: str, result: Result) -> Row:
    schedule, problem = result.schedule, result.problem
    return {
        "case": case.name,
        "placement": placement,
        "seed": result.seed,
        "seconds": result.makespan,
        "devices": len(result.devices_used),
        "transfers": len(schedule.tensor),
        "moved_bytes": int(problem.size[schedule.tensor].sum()),
        "busiest_seconds": float(schedule.busy(problem).max()),
    }


def _draw(
    case: Case,
    problem: Problem,
    results: Mapping[str, Result],
    parts: lanes.Parts,
    options: argparse.Namespace,
) -> None:
    titles = {"expert": "Expert", "post": "Post"}
    schedules = {
        f"{titles[name]}, {result.makespan:.3f} s": result.schedule
        for name, result in results.items()
    }
    path = options.images / f"post_timeline_{case.network}.svg"
    lanes.draw(path, problem, schedules, parts)
    print(f"{path}: {published.TITLES[case.network]} on {case.gpus} GPUs")
    options.traces.mkdir(parents=True, exist_ok=True)
    for name, result in results.items():
        trace = options.traces / f"{case.network}_{name}.pftrace"
        perfetto.write(problem, result.schedule, trace)
        print(f"{trace}: open it at https://ui.perfetto.dev")


if __name__ == "__main__":
    main()
