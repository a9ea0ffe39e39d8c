"""Settings of hill climbing: its groups and scales, on networks that no paper's table has.

`benchmarks.learning.tuning` says what a score is. Two learned methods in `tuned` settings stand
beside the candidates. Results with `--noise` are recorded under a name of their own.
"""

from __future__ import annotations

from functools import partial

import situate
from benchmarks.learning import tune_softmax, tuning
from benchmarks.lib.record import record
from situate.grouping import group
from situate.solvers.learned.initial_placements import InitialPlacements
from situate.solvers.learned.levels import levels
from situate.solvers.local_search.hill_climbing import GROUPS, HillClimber

LEARNED = ("post tuned", "cross_entropy tuned")


def candidates() -> dict[str, tuning.Make]:
    """By name: groups moved in blocks of every scale, or one by one."""
    softmax = tune_softmax.candidates()
    found: dict[str, tuning.Make] = {
        name: partial(tune_softmax.learner, settings=softmax[name]) for name in LEARNED
    }
    for groups in (96, 192, GROUPS, 2 * GROUPS):
        found[f"hill_climbing groups {groups}"] = partial(climber, groups=groups)
    for groups in (96, GROUPS):
        name = f"hill_climbing groups {groups} one by one"
        found[name] = partial(climber, groups=groups, blocks=False)
    found[f"hill_climbing structure {GROUPS}"] = partial(climber, groups=GROUPS, rule="structure")
    return found


def climber(
    problem: situate.Problem,
    samples: int,
    seed: int,
    *,
    groups: int,
    blocks: bool = True,
    rule: str = "heavy-edge",
) -> HillClimber:
    """With so many groups of a rule."""
    made = group(problem, rule, groups)
    every = levels(problem, made)
    return HillClimber(made, every if blocks else every[:1], InitialPlacements(made), seed)


def main(arguments: list[str] | None = None) -> None:
    """Climb, print and record."""
    options = tuning.parser(__doc__, seeds=3, samples=tune_softmax.SAMPLES).parse_args(arguments)
    trials = tuning.trials(candidates(), tune_softmax.PROBLEMS, options)
    found = tuning.outcomes(trials, options.processes)
    name = "tune_climbing_noisy" if options.noise else "tune_climbing"
    record(name, {"candidates": tuning.scores(found)}, options=options)


if __name__ == "__main__":
    main()
