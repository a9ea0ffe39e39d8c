"""`python -m benchmarks.gpu`: the figures of one GPU, in eight minutes, in one JSON file.

Needs nothing but Python and PyTorch to start, and no network; see README.md in this folder.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.gpu import plan
from benchmarks.gpu.report import Report, head, one_line, say
from benchmarks.gpu.stages import Guard, Outcome, run_all

OUT = Path("build/gpu/gpu.json")

LONGEST_BUDGET = 470.0
"""Seconds of all stages; the command ends within ten more, and so within eight minutes."""


def main(arguments: list[str] | None = None) -> None:
    """Run the stages, and write the report after each."""
    options = _options(arguments)
    phases = plan.selection(
        plan.phases(options.networks, options.pairs, options.jobs), options.stages
    )
    names = [stage.name for phase in phases for stage in phase.stages]
    settings = {key: str(value) if isinstance(value, Path) else value
            for key, value in vars(options).items()}  # fmt: skip
    report = Report(options.out, head(settings, options.wheels / "COMMIT"), names)
    guard = Guard(options.budget, _for_stages(options), plan.environment(options.site))
    signal.signal(signal.SIGTERM, _end)

    def on_outcome(name: str, outcome: Outcome) -> None:
        report.add(name, outcome)
        line = one_line(outcome.verdict, outcome.error)
        say(f"{name}: {outcome.verdict}, {outcome.seconds:.1f} s {line}")

    try:
        for phase in phases:
            run_all(guard, phase.stages, phase.jobs, on_outcome)
        report.finish()
    finally:
        guard.end()
    say(f"{options.out}: {options.out.stat().st_size:,} bytes")


def _end(*_: Any) -> NoReturn:
    """Leave by an exception, so that no stage is left behind."""
    sys.exit(143)


def _for_stages(options: argparse.Namespace) -> list[str]:
    tiny = ["--tiny"] * options.tiny
    folders = ["--wheels", str(options.wheels), "--site", str(options.site)]
    return ["--device", options.device, "--seed", str(options.seed), *folders, *tiny]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=OUT, help="the report")
    add("--device", default="cuda:0", help="cpu, to rehearse without a GPU")
    add("--tiny", action="store_true", help="small sizes, to rehearse")
    add("--budget", type=float, default=460.0, help="seconds of all stages")
    add("--seed", type=int, default=0)
    add("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="networks captured at once")
    add("--networks", nargs="*", default=plan.NETWORKS, choices=plan.NETWORKS)
    add("--pairs", nargs="*", default=plan.PAIRS, help="networks on two devices")
    add("--stages", nargs="+", metavar="NAME", help="all whose names begin so")
    add("--wheels", type=Path, default=Path("build/gpu/wheels"))
    add("--site", type=Path, default=Path("build/gpu/site"))
    options = parser.parse_args(arguments)
    if not 0 < options.budget <= LONGEST_BUDGET:
        parser.error(f"--budget: must be above 0 and at most {LONGEST_BUDGET:g}")
    options.wheels, options.site = options.wheels.absolute(), options.site.absolute()
    if options.jobs < 1:
        parser.error(f"--jobs: must be positive, got {options.jobs}")
    return options


if __name__ == "__main__":
    main()
