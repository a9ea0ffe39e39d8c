"""Spotlight (Gao, Chen and Li, ICML 2018) on its own benchmark: a CNN for CIFAR-10, four GPUs.

The network has the 926 ops and 86 groups of the slides. These show its learning curve and no
seconds, so nothing is calibrated.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from research import IMAGES
from research.papers import cifar_tensorflow, curves, rules
from research.papers.cases import Case
from research.papers.experiment import SETTINGS, Experiment, parser
from research.papers.runs import Run
from research.papers.tables import Results

CASE = Case(cifar_tensorflow.NAME, 4, "k80")
LEARNERS = ("spotlight", "ppo")


def main(arguments: list[str] | None = None) -> None:
    """Run, print, record, and draw research/images/spotlight_curves.svg."""
    options = parser(__doc__, "spotlight_cifar", [CASE.name])
    options.add_argument("--images", type=Path, default=IMAGES, metavar="FOLDER")
    chosen = options.parse_args(arguments)
    Experiment(chosen, (rules.GPU, "expert"), _runs).measure([CASE])
    results = Results.read(chosen.out)
    curves.draw(chosen.images / "spotlight_curves.svg", results, columns(results), LEARNERS)


def columns(results: Results) -> list[curves.Column]:
    """One for each of the settings that were run, also apart."""
    run = [settings for settings in SETTINGS if results.of(CASE.name, "spotlight", settings)]
    return [(CASE.name, settings, f"{settings} settings") for settings in run]


def _runs(case: Case, options: argparse.Namespace) -> Iterator[Run]:
    for seed in range(options.seeds):
        yield Run(case, "auto", "tuned", seed, options.samples)
        for settings in options.settings:
            for method in LEARNERS:
                yield Run(case, method, settings, seed, options.samples)


if __name__ == "__main__":
    main()
