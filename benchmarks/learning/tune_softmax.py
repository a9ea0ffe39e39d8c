"""The `tuned` settings of the softmax methods: candidates on networks that no paper's table has.

`benchmarks.learning.tuning` says what a score is. Another number of samples is recorded under a
name of its own: with few of them, as on a real machine, other settings may do better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import situate
from benchmarks.learning import tuning
from benchmarks.lib.record import record
from situate.evaluators.workers.jobs import Function
from situate.grouping import Groups, group
from situate.solvers.learned.grouped import coarser_groups
from situate.solvers.learned.penalty import failure_seconds
from situate.solvers.learned.softmax import TUNED, SoftmaxLearner, SoftmaxSettings

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

LEVELS: tuple[dict[str, object], ...] = (
    {"groups": 256, "coarser": ((16, 0.15), (64, 0.4))},
    {"groups": 512, "coarser": ((16, 0.15), (128, 0.4))},
    {"groups": 512, "coarser": ((32, 0.15), (128, 0.4))},
    {"groups": 512, "coarser": ((16, 0.1), (64, 0.3), (192, 0.6))},
    {"groups": 512, "coarser": ((64, 0.3),)},
    {"groups": 1024, "coarser": ((16, 0.15), (128, 0.4))},
)
"""From few groups to many."""


def candidates(samples: int = SAMPLES) -> dict[str, SoftmaxSettings]:
    """The settings that are weighed against one another, by method and change: those that are
    others in a search of so many samples."""
    found = {f"{name} paper, {GROUPS} groups": _as_paper(s) for name, s in TUNED.items()}
    for name, settings in TUNED.items():
        found[f"{name} tuned"] = settings
        for change in _changes(name):
            changed = replace(settings, **change).within(samples)
            if changed == settings.within(samples):
                continue
            text = ", ".join(f"{key} {value}" for key, value in change.items())
            found[f"{name} {text}"] = changed
    return found


def _as_paper(tuned: SoftmaxSettings) -> SoftmaxSettings:
    """The paper's numbers on groups of the tuned rule."""
    return SoftmaxSettings(
        gradient=tuned.gradient,
        cross_entropy=tuned.cross_entropy,
        grouping=tuned.grouping,
        groups=GROUPS,
    )


def _changes(method: str) -> Iterator[dict[str, object]]:
    yield from ({"groups": count, "coarser": ()} for count in (64, GROUPS, 128))
    yield from LEVELS
    yield {"grouping": "structure"}
    yield {"single_first": False}
    if method != "cross_entropy":
        yield from ({"learning_rate": rate} for rate in (0.1, 0.2, 0.3, 1.0, 3.0))
    if method in ("post", "cross_entropy"):
        yield from ({"epsilon": epsilon} for epsilon in (0.03, 0.1))
        yield from ({"memory": memory} for memory in (1, 2))
        yield from ({"minimisations": count} for count in (0, 5, 20))
    if method == "post":
        yield from ({"N": 120, "learning_rate": rate} for rate in (0.2, 0.3, 0.5))
        yield from ({"N": 240, "elite": 0.05, "learning_rate": rate} for rate in (0.3, 0.5))


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
    options = tuning.parser(__doc__, seeds=3, samples=SAMPLES).parse_args(arguments)
    makes = {name: make(settings) for name, settings in candidates(options.samples).items()}
    found = tuning.outcomes(tuning.trials(makes, PROBLEMS, options), options)
    name = "tune_softmax" if options.samples == SAMPLES else f"tune_softmax_{options.samples}"
    record(name, {"candidates": tuning.scores(found)}, options=options)


if __name__ == "__main__":
    main()
