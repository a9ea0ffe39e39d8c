"""Settings of hill climbing: its groups and scales, on networks that no paper's table has.

`research.learning.tuning` defines the score. Two learned methods in `tuned` settings stand
beside the candidates. Results with `--noise` are recorded under a name of their own.
"""

from __future__ import annotations

import situate
from benchmarks.lib.record import record
from research import RESULTS
from research.learning import tune_softmax, tuning
from situate.evaluators.workers.jobs import Function
from situate.grouping import group
from situate.solvers.learned.groups import levels
from situate.solvers.learned.initial_placements import InitialPlacements
from situate.solvers.local_search.hill_climbing import GROUPS, HillClimber

LEARNED = ("post tuned", "cross_entropy tuned")


def candidates() -> dict[str, tuning.Make]:
    """By name: groups moved in blocks of every scale, or one by one."""
    softmax = tune_softmax.candidates()
    result: dict[str, tuning.Make] = {name: tune_softmax.make(softmax[name]) for name in LEARNED}
    for groups in (96, 192, GROUPS, 2 * GROUPS):
        result[f"hill_climbing groups {groups}"] = make(groups)
    for groups in (96, GROUPS):
        result[f"hill_climbing groups {groups} one by one"] = make(groups, blocks=False)
    result[f"hill_climbing heavy-edge {GROUPS}"] = make(GROUPS, rule="heavy-edge")
    return result


def make(groups: int, *, blocks: bool = True, rule: str = "structure") -> tuning.Make:
    """The climber with so many groups of a rule."""
    return Function.of(climber, (groups, blocks, rule))


def climber(
    groups: int, blocks: bool, rule: str, problem: situate.Problem, samples: int, seed: int
) -> HillClimber:
    """See `make`."""
    groups_of_ops = group(problem, rule, groups)
    every = levels(problem, groups_of_ops)
    return HillClimber(
        groups_of_ops, every if blocks else every[:1], InitialPlacements(groups_of_ops), seed
    )


def main(arguments: list[str] | None = None) -> None:
    """Climb, print and record."""
    options = tuning.parser(__doc__, seeds=3, samples=tune_softmax.SAMPLES).parse_args(arguments)
    trials = tuning.trials(candidates(), tune_softmax.PROBLEMS, options)
    result = tuning.outcomes(trials, options)
    name = "tune_climbing_noisy" if options.noise else "tune_climbing"
    record(name, {"candidates": tuning.scores(result)}, options=options, folder=RESULTS)


if __name__ == "__main__":
    main()
