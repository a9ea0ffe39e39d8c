"""The `tuned` settings of the softmax methods: candidates on networks that no paper's table has.

Every candidate learns on every problem. Its score is the mean, over the problems, of how far its
best placement is above the best that any candidate found there, in per cent.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import situate
from benchmarks.graphs import branching, layered
from benchmarks.record import Row, record
from situate.evaluators.simulated import SimulatedMachine
from situate.grouping import Groups, group
from situate.readers.torch import capture
from situate.solvers import cross_entropy, policy_gradient, post, ppo
from situate.solvers.failures import failure_seconds
from situate.solvers.softmax_learner import SoftmaxLearner, SoftmaxSettings
from situate.zoo import nmt, resnet

GRAPHS = {
    "gpt2": lambda: situate.zoo.load("gpt2"),
    "bert": lambda: situate.zoo.load("bert"),
    "vit": lambda: situate.zoo.load("vit"),
    "layered 1": lambda: layered(1500, 1),
    "layered 2": lambda: layered(1500, 2),
    "branching 4": lambda: branching(8, 4, 0),
    "branching 6": lambda: branching(8, 6, 1),
    "recurrent 3": lambda: capture(lambda: nmt.build(3, steps=24)),
    "recurrent 2": lambda: capture(lambda: nmt.build(2, steps=40)),
    "residual": lambda: capture(lambda: resnet.build(2, 2, 2, 2)),
}
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

Times = dict[tuple[str, str], list[tuple[float, float]]]
"""By problem, the best time and the last mean of every seed."""


@dataclass(frozen=True)
class Trial:
    """One candidate on one problem with one seed."""

    candidate: str
    settings: SoftmaxSettings
    problem: tuple[str, str]
    seed: int


def candidates() -> dict[str, SoftmaxSettings]:
    """The settings that were weighed against one another, by method and change."""
    tuned = {
        name.__name__.rsplit(".", 1)[1]: name.TUNED
        for name in (policy_gradient, ppo, cross_entropy, post)
    }
    found = {f"{name} paper, grouped": _as_paper(s) for name, s in tuned.items()}
    for name, settings in tuned.items():
        found[f"{name} tuned"] = settings
        for change in (c for c in _changes(name) if replace(settings, **c) != settings):
            text = ", ".join(f"{key} {value}" for key, value in change.items())
            found[f"{name} {text}"] = replace(settings, **change)
    return found


def _as_paper(tuned: SoftmaxSettings) -> SoftmaxSettings:
    """The paper's numbers on the tuned grouping."""
    return SoftmaxSettings(
        gradient=tuned.gradient,
        cross_entropy=tuned.cross_entropy,
        grouping=tuned.grouping,
        groups=tuned.groups,
    )


def _changes(method: str) -> Iterator[dict[str, object]]:
    yield from ({"groups": count} for count in (64, 128))
    yield {"single_first": False}
    if method != "cross_entropy":
        yield from ({"learning_rate": rate} for rate in (0.1, 0.2, 0.3, 1.0, 3.0))
    if method in ("post", "cross_entropy"):
        yield from ({"epsilon": epsilon} for epsilon in (0.03, 0.1))
        yield from ({"memory": memory} for memory in (1, 2))
    if method == "post":
        yield from ({"N": 120, "learning_rate": rate} for rate in (0.2, 0.3, 0.5))
        yield from ({"N": 240, "elite": 0.05, "learning_rate": rate} for rate in (0.3, 0.5))


@cache
def _problem(network: str, preset: str) -> situate.Problem:
    return situate.Problem(GRAPHS[network](), situate.Cluster.preset(preset))


@cache
def _groups(problem: tuple[str, str], rule: str, count: int | None) -> Groups:
    return group(_problem(*problem), rule, count)


def learn(trial: Trial) -> tuple[float, float]:
    """The best time, and the mean of the last 60."""
    problem, settings = _problem(*trial.problem), trial.settings
    groups = _groups(trial.problem, settings.grouping, settings.groups)
    failure = failure_seconds(problem)
    learner = SoftmaxLearner(groups, settings, SAMPLES, failure, trial.seed)
    machine, times = SimulatedMachine(problem, threads=1), []
    while len(times) < SAMPLES:
        placements = learner.ask(learner.batch)
        measurements = machine.measure(placements, len(times))
        learner.tell(placements, measurements)
        times.extend(measurements.times(failure))
    return min(times), float(np.mean(times[-60:]))


def main(arguments: list[str] | None = None) -> None:
    """Learn, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="+", help="candidates whose names begin so")
    options = parser.parse_args(arguments)
    for problem in PROBLEMS:
        _problem(*problem)
    chosen = {
        name: settings
        for name, settings in candidates().items()
        if not options.only or name.startswith(tuple(options.only))
    }
    trials = [
        Trial(name, settings, problem, seed)
        for name, settings in chosen.items()
        for problem in PROBLEMS
        for seed in range(options.seeds)
    ]
    with ProcessPoolExecutor(options.processes) as pool:
        outcomes = list(pool.map(learn, trials, chunksize=options.seeds))
    record("tune_softmax", {"candidates": _scores(trials, outcomes)}, options=options)


def _scores(trials: list[Trial], outcomes: list[tuple[float, float]]) -> list[Row]:
    means: dict[str, Times] = {}
    for trial, outcome in zip(trials, outcomes, strict=True):
        means.setdefault(trial.candidate, {}).setdefault(trial.problem, []).append(outcome)
    best = {p: min(np.mean(of[p], axis=0)[0] for of in means.values()) for p in PROBLEMS}
    return [
        {"candidate": candidate}
        | {"best, % above": _above(of, best, 0), "last 60, % above": _above(of, best, 1)}
        | {f"{p[0]} {p[1]}": 100 * (np.mean(of[p], axis=0)[0] / best[p] - 1) for p in PROBLEMS}
        for candidate, of in means.items()
    ]


def _above(of: Times, best: dict[tuple[str, str], float], which: int) -> float:
    return float(np.mean([100 * (np.mean(of[p], axis=0)[which] / best[p] - 1) for p in PROBLEMS]))


if __name__ == "__main__":
    main()
