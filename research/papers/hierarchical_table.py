"""The table of the Hierarchical Planner (Mirhoseini et al., ICLR 2018): six cases on K40s.

Op costs are calibrated on the column of one GPU, which is no prediction therefore.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from research.papers import published, rules
from research.papers.cases import Case, calibrated
from research.papers.experiment import Experiment, parser
from research.papers.runs import Run

SAMPLES = 4000
"""1,000 updates, as in the paper, of the four placements that its settings measure for each."""

RULES = (rules.CPU, rules.GPU, "expert", "scotch", "mincut")


def main(arguments: list[str] | None = None) -> None:
    """Run, print and record."""
    names = [f"{row.network}/{row.gpus}" for row in published.HIERARCHICAL]
    options = parser(__doc__, "hierarchical_table", names, SAMPLES)
    chosen = options.parse_args(arguments)
    cases = [Case(row.network, row.gpus, "k40") for row in published.HIERARCHICAL]
    experiment = Experiment(chosen, RULES, _runs)
    experiment.measure([calibrated(case) for case in cases if case.name in chosen.rows])


def _runs(case: Case, options: argparse.Namespace) -> Iterator[Run]:
    for seed in range(options.seeds):
        if "tuned" in options.settings:
            yield Run(case, "auto", "tuned", seed, options.samples)
        for settings in options.settings:
            if settings != "paper":
                yield Run(case, "post", settings, seed, options.samples)
            yield Run(case, "hierarchical", settings, seed, options.samples)


if __name__ == "__main__":
    main()
