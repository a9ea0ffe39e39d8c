"""The `tuned` settings of the softmax methods: candidates on networks that no paper's table has.

`research.learning.tuning` defines the score. Another number of samples is recorded under a
name of its own: with few of them, as on a real machine, other settings may do better. So is
`--grouping heavy-edge`, whose groups are told costs. All four methods have the same candidates, as
far as a change touches them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import situate
from benchmarks.lib.record import record
from research import RESULTS
from research.learning import tuning
from situate.evaluators.workers.jobs import Function
from situate.grouping import Groups, group
from situate.solvers.learned.groups import coarser_groups
from situate.solvers.learned.post import TUNED, SoftmaxLearner, SoftmaxSettings
from situate.solvers.learned.rewards import failure_seconds

PROBLEMS = (
    ("gpt2", "k80-4"),
    ("bert", "k80-2"),
    ("vit", "k80-4"),
    ("vit", "k80-8"),
    ("layered 1", "k80-2"),
    ("layered 2", "k80-4"),
    ("branching 4", "k80-2"),
    ("branching 6", "k80-4"),
    ("recurrent 3", "k40-4"),
    ("recurrent 3", "k80-2"),
    ("recurrent 2", "k80-2"),
    ("residual", "k80-2"),
    ("residual", "k80-4"),
)

SAMPLES = 2400

GROUPS = 96
"""As many as the sequence models place, for candidates without levels."""

LEVELS: tuple[dict[str, Any], ...] = (
    {"groups": 256, "coarser": ((16, 0.15), (64, 0.4))},
    {"groups": 512, "coarser": ((16, 0.15), (128, 0.4))},
    {"groups": 512, "coarser": ((32, 0.15), (128, 0.4))},
    {"groups": 512, "coarser": ((16, 0.1), (64, 0.3), (192, 0.6))},
    {"groups": 512, "coarser": ((64, 0.3),)},
    {"groups": 1024, "coarser": ((16, 0.15), (128, 0.4))},
)
"""From few groups to many."""


RULES = ("structure", "heavy-edge")
"""Rules of the groups of all candidates but those that have the other one."""


def candidates(samples: int = SAMPLES, rule: str = RULES[0]) -> dict[str, SoftmaxSettings]:
    """The settings that are weighed against one another, by method and change: those that are
    others in a search of so many samples."""
    tuned = {name: replace(settings, grouping=rule) for name, settings in TUNED.items()}
    result = {f"{name} paper, {GROUPS} groups": _as_paper(s) for name, s in tuned.items()}
    for name, settings in tuned.items():
        result[f"{name} tuned"] = settings
        for change in _changes(settings):
            changed = replace(settings, **change).within(samples)
            if changed == settings.within(samples):
                continue
            text = ", ".join(f"{key} {value}" for key, value in change.items())
            result[f"{name} {text}"] = changed
    return result


def _as_paper(tuned: SoftmaxSettings) -> SoftmaxSettings:
    """The paper's numbers on groups of the tuned rule."""
    return SoftmaxSettings(
        gradient=tuned.gradient,
        cross_entropy=tuned.cross_entropy,
        grouping=tuned.grouping,
        groups=GROUPS,
    )


def _changes(tuned: SoftmaxSettings) -> Iterator[dict[str, Any]]:
    yield from ({"groups": count, "coarser": ()} for count in (64, GROUPS, 128))
    yield from LEVELS
    yield from ({"grouping": rule} for rule in RULES if rule != tuned.grouping)
    yield {"single_first": False}
    rates = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0) if tuned.gradient else ()
    yield from ({"learning_rate": rate} for rate in rates)
    if tuned.cross_entropy:
        yield from ({"epsilon": epsilon} for epsilon in (0.03, 0.05, 0.1))
        yield from ({"memory": memory} for memory in (1, 2, 4))
        yield from ({"minimisations": count} for count in (0, 5, 20))
        for N, elite in ((120, 0.1), (240, 0.05)):
            several: dict[str, Any] = {"N": N, "elite": elite}
            yield several
            yield from ({**several, "learning_rate": rate} for rate in rates if 0.2 < rate < 1)


def make(settings: SoftmaxSettings) -> tuning.Make:
    """The learner in any settings."""
    return Function.of(learner, (settings,))


def learner(
    settings: SoftmaxSettings, problem: situate.Problem, samples: int, seed: int
) -> SoftmaxLearner:
    """See `make`."""
    counts, shares = zip(*settings.coarser, strict=True) if settings.coarser else ((), ())
    *coarser, groups = _levels(problem, settings.grouping, settings.groups, counts)
    levels = list(zip(coarser, shares, strict=True))
    return SoftmaxLearner(groups, settings, samples, failure_seconds(problem), seed, coarser=levels)


@cache
def _levels(
    problem: situate.Problem, rule: str, count: int | None, coarser: tuple[int, ...]
) -> list[Groups]:
    groups = group(problem, rule, count)
    return [*coarser_groups(problem, groups, rule, coarser), groups]


def main(arguments: list[str] | None = None) -> None:
    """Learn, print and record."""
    parser = tuning.parser(__doc__, seeds=3, samples=SAMPLES)
    parser.add_argument("--grouping", choices=RULES, default=RULES[0])
    options = parser.parse_args(arguments)
    wanted = candidates(options.samples, options.grouping)
    makes = {name: make(settings) for name, settings in wanted.items()}
    result = tuning.outcomes(tuning.trials(makes, PROBLEMS, options), options)
    record(name_of(options), {"candidates": tuning.scores(result)}, options=options, folder=RESULTS)


def name_of(options: argparse.Namespace) -> str:
    """The record's name, with all settings that differ from the default."""
    named = [options.grouping] if options.grouping != RULES[0] else []
    named += [str(options.samples)] if options.samples != SAMPLES else []
    return "_".join(["tune_softmax", *named])


if __name__ == "__main__":
    main()
