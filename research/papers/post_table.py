"""Table 1 of Post (Gao et al., NeurIPS 2018): eleven cases on K80s, learners of two settings.

Op costs are calibrated on the single-GPU column, which is no prediction therefore. What an
interrupted invocation at the same commit has measured is kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from research.papers import checks, published, rules
from research.papers.cases import Case, calibrated
from research.papers.claims import post as claims
from research.papers.experiment import Experiment, parser
from research.papers.runs import Run

RULES = (rules.GPU, "expert", "metis")


def main(arguments: list[str] | None = None) -> None:
    """Run, print and record."""
    options = parser(__doc__, "post_table", [f"{r.network}/{r.gpus}" for r in published.POST])
    chosen = options.parse_args(arguments)
    cases = [Case(row.network, row.gpus, "k80") for row in published.POST]
    experiment = Experiment(chosen, RULES, _runs, claims.targets)
    experiment.measure([calibrated(case) for case in cases if case.name in chosen.rows])


def _runs(case: Case, options: argparse.Namespace) -> Iterator[Run]:
    for seed in range(options.seeds):
        if "tuned" in options.settings:
            yield Run(case, "auto", "tuned", seed, options.samples)
        for settings in options.settings:
            for method in checks.SOFTMAX:
                yield Run(case, method, settings, seed, options.samples)


if __name__ == "__main__":
    main()
