"""The `tuned` settings of the sequence models: candidates on networks that no paper's table has.

`research.learning.tuning` defines the score. Four of its problems, two seeds and fewer
samples than a search has by default take about 15 minutes of CPU. The papers' numbers, by far the
slowest of Spotlight and the Hierarchical Planner, are run with the first seed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import situate
from benchmarks.lib.record import Row, Target, record
from research import RESULTS
from research.learning import tuning
from situate.evaluators.workers.jobs import Function
from situate.solvers.learned import colocrl, hierarchical, spotlight
from situate.solvers.learned.colocrl import ColocSettings
from situate.solvers.learned.hierarchical import HierarchicalSettings
from situate.solvers.learned.learner import Learner, Learning
from situate.solvers.learned.spotlight import SpotlightSettings

PROBLEMS = (
    ("vit", "k80-4"),
    ("layered 2", "k80-4"),
    ("branching 6", "k80-4"),
    ("recurrent 3", "k80-2"),
)
SAMPLES = 720
MOST = 2.0
"""Points by which the score of `tuned` may be above its method's best."""

SequenceSettings = SpotlightSettings | ColocSettings | HierarchicalSettings
Changes = Mapping[str, Mapping[str, Any]]
"""By name, the settings in which a candidate differs from `tuned`."""

GROUPS: Changes = {"groups 64": {"groups": 64}, "groups 128": {"groups": 128}}
HEAVY_EDGE: Changes = {"heavy-edge": {"grouping": "heavy-edge"}}
REWARD: Changes = {"rewards in seconds": {"normalise": False}}

OF_SPOTLIGHT: Changes = {
    **GROUPS,
    **HEAVY_EDGE,
    **REWARD,
    "learning rate 0.003": {"learning_rate": 0.003},
    "learning rate 0.03": {"learning_rate": 0.03},
    "10 steps": {"steps": 10},
    "not aligned": {"shape": replace(spotlight.TUNED.shape, aligned=False)},
}
OF_COLOCRL: Changes = {
    **GROUPS,
    **HEAVY_EDGE,
    **REWARD,
    "learning rate 0.001": {"learning_rate": 0.001},
    "learning rate 0.01": {"learning_rate": 0.01},
    "no entropy": {"entropy": 0.0},
    "not aligned": {"shape": replace(colocrl.TUNED.shape, aligned=False)},
}
OF_HIERARCHICAL: Changes = {
    **GROUPS,
    **HEAVY_EDGE,
    **REWARD,
    "learning rate 0.003": {"learning_rate": 0.003},
    "learning rate 0.03": {"learning_rate": 0.03},
    "groups at random": {"grouping": None},
    "noise 0.5": {"noise": 0.5},
    "not aligned": {"aligned": False},
}


def candidates() -> dict[str, SequenceSettings]:
    """The settings that are weighed against one another; the first word is the method."""
    groups: dict[str, Any] = {"grouping": "structure", "groups": 96}
    return {
        **_of(
            "spotlight",
            spotlight.TUNED,
            replace(spotlight.PAPER, **groups),
            OF_SPOTLIGHT,
        ),
        **_of("colocrl", colocrl.TUNED, replace(colocrl.PAPER, **groups), OF_COLOCRL),
        **_of(
            "hierarchical",
            hierarchical.TUNED,
            replace(hierarchical.PAPER, groups=96),
            OF_HIERARCHICAL,
        ),
    }


def _of(
    method: str, tuned: SequenceSettings, paper: SequenceSettings, changes: Changes
) -> dict[str, SequenceSettings]:
    result = {f"{method} tuned": tuned, f"{method} paper, 96 groups": paper}
    return result | {f"{method} {name}": replace(tuned, **c) for name, c in changes.items()}


def learner(
    settings: SequenceSettings, problem: situate.Problem, samples: int, seed: int
) -> Learner:
    """In any settings; none depends on the number of samples."""
    match settings:
        case SpotlightSettings():
            return spotlight.make(problem, Learning(), settings, seed)
        case ColocSettings():
            return colocrl.make(problem, Learning(), settings, seed)
        case HierarchicalSettings():
            return hierarchical.make(problem, settings, seed)


def main(arguments: list[str] | None = None) -> None:
    """Learn, print and record."""
    options = tuning.parser(__doc__, seeds=2, samples=SAMPLES).parse_args(arguments)
    makes = {name: Function.of(learner, (settings,)) for name, settings in candidates().items()}
    trials = tuning.trials(makes, PROBLEMS, options)
    once = [trial for trial in trials if trial.seed == 0 or " paper" not in trial.candidate]
    result = tuning.outcomes(once, options)
    rows = list(methods(result))
    tables = {"candidates": tuning.scores(result), "methods": rows}
    record("tune_sequence", tables, [target(row) for row in rows], options=options, folder=RESULTS)


def methods(outcomes: Mapping[str, tuning.Outcomes]) -> Iterator[Row]:
    """By method, its best candidate, and how far scores are to be trusted."""
    score = {str(row["candidate"]): float(row["best, % above"]) for row in tuning.scores(outcomes)}
    for tuned in (name for name in score if name.endswith(" tuned")):
        method = tuned.split()[0]
        own = [name for name in score if name.split()[0] == method]
        best = min(own, key=score.__getitem__)
        yield {
            "method": method,
            "tuned": score[tuned],
            "best": score[best],
            "best candidate": best,
            "standard error": _error([outcomes[name] for name in own]),
        }


def _error(outcomes: list[tuning.Outcomes]) -> float | None:
    """Standard error of a score, in points, from the differences between seeds: the root mean
    square over the candidates that have several."""
    squares = [_square(of) for of in outcomes if min(map(len, of.values())) > 1]
    return float(np.sqrt(np.mean(squares))) if squares else None


def _square(of: tuning.Outcomes) -> float:
    """The squared standard error of one candidate's score: a mean of problems, each one of
    seeds."""
    bests = [np.array([best for best, _ in outcomes]) for outcomes in of.values()]
    return float(sum((100 * b.std(ddof=1) / b.mean()) ** 2 / len(b) for b in bests) / len(of) ** 2)


def target(row: Row) -> Target:
    """That a method's `tuned` is not far from its best candidate."""
    points = row["tuned"] - row["best"]
    return Target(
        f"{row['method']}: points of `tuned` above the best candidate, {row['best candidate']}",
        f"at most {MOST:g}",
        f"{points:.1f}",
        points <= MOST,
    )


if __name__ == "__main__":
    main()
