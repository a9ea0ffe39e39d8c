"""Problems, trials and scores of the searches for `tuned` settings.

Every candidate learns on every problem. Its score is the mean, over the problems, of how far its
best placement is above the best that any candidate found there, in per cent. Where measurements are
noisy, a trial's best placement is the best of those that seemed fastest.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

import situate
from benchmarks.lib.graphs import branching
from benchmarks.lib.record import Row
from benchmarks.lib.workers import add_workers, jobs
from situate.bench.families.unequal import layered
from situate.evaluators.measurements import FINALISTS
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers.learned.learner import Learner
from situate.solvers.learned.rewards import failure_seconds
from situate.torch_capture import capture
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
"""Networks that no paper's table has."""

Name = tuple[str, str]
"""A problem by its network in `GRAPHS` and its preset cluster."""

Make = Callable[[situate.Problem, int, int], Learner]
"""From a problem, a number of samples and a seed to the learner of one candidate; is sent to
workers."""

Outcome = tuple[float, float]
"""The best time of a trial, and the mean of its last 60."""

Outcomes = Mapping[Name, Sequence[Outcome]]
"""The outcomes of one candidate: by problem, for every seed."""


@dataclass(frozen=True)
class Trial:
    """One candidate on one problem with one seed, for so many samples; `noise` is that of
    `SimulatedMachine`."""

    candidate: str
    make: Make
    problem: Name
    seed: int
    samples: int
    noise: float = 0.0


def parser(description: str | None, *, seeds: int, samples: int) -> argparse.ArgumentParser:
    """The options that both searches have, and their defaults."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=seeds, help=f"0, 1, ...; default: {seeds}")
    parser.add_argument("--samples", type=int, default=samples, help=f"a trial; default: {samples}")
    parser.add_argument("--noise", type=float, default=0.0, help="of measurements; default: none")
    add_workers(parser, 2, "trials")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="candidates that begin so")
    return parser


def trials(
    makes: Mapping[str, Make], problems: Iterable[Name], options: argparse.Namespace
) -> list[Trial]:
    """The trials of every candidate that `options` leave, on every problem with every seed."""
    begins = tuple(options.only or [""])
    return [
        Trial(candidate, make, name, seed, options.samples, options.noise)
        for candidate, make in makes.items()
        if candidate.startswith(begins)
        for name in problems
        for seed in range(options.seeds)
    ]


def outcomes(
    trials: Sequence[Trial], options: argparse.Namespace
) -> dict[str, dict[Name, list[Outcome]]]:
    """The outcomes of the trials, by candidate, problem and seed."""
    problems = {name: problem(*name) for name in dict.fromkeys(trial.problem for trial in trials)}
    result: dict[str, dict[Name, list[Outcome]]] = {}
    with jobs(options, learn, problems) as learnt:
        for number, outcome in enumerate(learnt.map((trial,) for trial in trials)):
            trial = trials[number]
            print(f"{number + 1} of {len(trials)}: {_progress(trial, outcome)}", flush=True)
            result.setdefault(trial.candidate, {}).setdefault(trial.problem, []).append(outcome)
    return result


def _progress(trial: Trial, outcome: Outcome) -> str:
    where = " ".join(trial.problem)
    return f"{trial.candidate}, {where}, seed {trial.seed}: best {outcome[0]:.4g} s"


@cache
def problem(network: str, preset: str) -> situate.Problem:
    """Made once."""
    return situate.Problem(GRAPHS[network](), situate.Cluster.preset(preset))


def learn(problems: Mapping[Name, situate.Problem], trial: Trial) -> Outcome:
    """Run it on one thread."""
    on = problems[trial.problem]
    failure, learner = failure_seconds(on), trial.make(on, trial.samples, trial.seed)
    machine = SimulatedMachine(on, trial.noise, trial.seed, threads=1)
    times, time_of = list[float](), dict[bytes, float]()
    while len(times) < trial.samples:
        placements = learner.ask(learner.batch)
        measurements = machine.measure(placements, len(times))
        learner.tell(placements, measurements)
        batch_times = measurements.times(failure).tolist()
        times.extend(batch_times)
        time_of.update(
            zip((placement.tobytes() for placement in placements), batch_times, strict=True)
        )
    best = (
        _truly(on, sorted(time_of, key=time_of.__getitem__)[:FINALISTS])
        if trial.noise
        else min(times)
    )
    return best, float(np.mean(times[-60:]))


def _truly(on: situate.Problem, placements: Sequence[bytes]) -> float:
    """The least seconds of placements, without noise."""
    rows = np.stack([np.frombuffer(placement, np.int32) for placement in placements])
    seconds = SimulatedMachine(on, threads=1).measure(rows, 0).times(failure_seconds(on))
    return float(seconds.min())


def scores(outcomes: Mapping[str, Outcomes]) -> list[Row]:
    """A row a candidate: its score, the same of the last 60, and by problem."""
    best = _best(outcomes.values())
    return [
        {"candidate": candidate}
        | {
            title: float(np.mean([_above(of[name], best[name], which) for name in of]))
            for which, title in enumerate(("best, % above", "last 60, % above"))
        }
        | {" ".join(name): _above(of[name], best[name], 0) for name in of}
        for candidate, of in outcomes.items()
    ]


def _best(outcomes: Iterable[Outcomes]) -> dict[Name, float]:
    """By problem, the least that a candidate's seeds found in the mean."""
    least: dict[Name, float] = {}
    for of_candidate in outcomes:
        for name, of_seeds in of_candidate.items():
            mean = float(np.mean(of_seeds, axis=0)[0])
            least[name] = min(mean, least.get(name, mean))
    return least


def _above(outcomes: Sequence[Outcome], best: float, which: int) -> float:
    return float(100 * (np.mean(outcomes, axis=0)[which] / best - 1))
