"""ColocRL (Mirhoseini et al., ICML 2017) on Inception-V3, RNNLM and NMT, on two and four K80s.

A review and others' slides have its networks, its 19.7 % and its 3.5 times, and no table. Op costs
are calibrated as in Post's Table 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from research.papers import rules
from research.papers.cases import Case, calibrated
from research.papers.experiment import Experiment, parser
from research.papers.runs import Run

CASES = tuple(
    Case(network, gpus, "k80") for network in ("inception_v3", "rnnlm", "nmt2") for gpus in (2, 4)
)
RULES = (rules.CPU, rules.GPU, "expert", "scotch", "mincut")


def main(arguments: list[str] | None = None) -> None:
    """Run, print and record."""
    chosen = parser(__doc__, "colocrl_table", [case.name for case in CASES]).parse_args(arguments)
    experiment = Experiment(chosen, RULES, _runs)
    experiment.measure([calibrated(case) for case in CASES if case.name in chosen.rows])


def _runs(case: Case, options: argparse.Namespace) -> Iterator[Run]:
    for seed in range(options.seeds):
        yield Run(case, "auto", "tuned", seed, options.samples)
        for settings in options.settings:
            yield Run(case, "colocrl", settings, seed, options.samples)


if __name__ == "__main__":
    main()
