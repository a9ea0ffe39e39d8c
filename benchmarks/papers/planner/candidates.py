"""Changes of the planner's `paper` settings, and what a candidate learns on a case."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.record import Row
from benchmarks.papers.cases import Case
from benchmarks.papers.runs import BATCH, learnt
from situate.data.problem import Problem
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers.learned import hierarchical
from situate.solvers.learned.hierarchical.settings import PAPER
from situate.solvers.learned.learner import Learner
from situate.solvers.learned.penalty import failure_seconds


@dataclass(frozen=True)
class Candidate:
    """Settings that differ from `paper` in `changes`.

    Attributes:
        name: what was changed, and to what.
        published: what `paper` has, and from which source.
        source: where the other value is from.
    """

    name: str
    published: str
    source: str
    changes: Mapping[str, Any]


PUBLISHED = "as published"

BASELINE = {"pessimistic": False}
RELEASED = {"tanh_constant": 1.0, "temperature": 1.0}
SLOW = {**BASELINE, "learning_rate": 0.001}

CANDIDATES = (
    Candidate(PUBLISHED, "–", "–", {}),
    Candidate(
        "first baseline: the first rewards' mean", "a failure; release", "`colocrl`", BASELINE
    ),
    Candidate("learning rate 0.01", "0.1; both", "`tuned`", {"learning_rate": 0.01}),
    Candidate("learning rate 0.001", "0.1; both", "`colocrl`", {"learning_rate": 0.001}),
    Candidate("temperature 1", "10; full version", "release", {"temperature": 1.0}),
    Candidate("C = 1", "5; full version", "release", {"tanh_constant": 1.0}),
    Candidate("temperature 1, C = 1", "10, 5; full version", "release", RELEASED),
    Candidate("no noise", "0.5; release", "full version", {"noise": 0.0}),
    Candidate("entropy 10", "none; both", "as `colocrl`", {"entropy": 10.0}),
    Candidate("entropy 100", "none; both", "as `colocrl`", {"entropy": 100.0}),
    Candidate("rewards in standard deviations", "R - b; both", "`tuned`", {"normalise": True}),
    Candidate("first baseline, learning rate 0.001", "as above", "as above", SLOW),
    Candidate("these, temperature 1, C = 1", "as above", "as above", {**SLOW, **RELEASED}),
)
"""One published setting after the other, changed alone, and some together; `full version` is the
ICLR paper, `release` TensorFlow's controller, as docs/methods/hierarchical.md names them."""

NAMES = [candidate.name for candidate in CANDIDATES]


@dataclass(frozen=True)
class Trial:
    """A candidate on a case with a seed, for so many samples."""

    candidate: Candidate
    case: Case
    seed: int
    samples: int


def row(trial: Trial) -> Row:
    """Run it on one thread."""
    begin = time.perf_counter()
    problem = trial.case.problem()
    learner = hierarchical.make(problem, replace(PAPER, **trial.candidate.changes), trial.seed)
    first = learner.batch
    samples = measured(problem, learner, trial.samples)
    found = dict(learnt(samples, problem))
    counted = np.where(np.isfinite(samples), samples, failure_seconds(problem))
    return {
        "case": trial.case.name,
        "candidate": trial.candidate.name,
        "seed": trial.seed,
        "samples": trial.samples,
        "best": float(samples.min()) if np.isfinite(samples).any() else None,
        "start_mean": float(counted[:first].mean()),
        "first_mean": found["mean_curve"][0],
        **found,
        "last_times": len(np.unique(counted[-BATCH:])),
        "seconds": round(time.perf_counter() - begin, 1),
    }


def measured(problem: Problem, learner: Learner, samples: int) -> NDArray[np.float64]:
    """(samples,) seconds of what the learner asks for, infinite where a placement fails."""
    machine, found = SimulatedMachine(problem, threads=1), list[float]()
    while len(found) < samples:
        placements = learner.ask(min(learner.batch, samples - len(found)))
        measurements = machine.measure(placements, len(found))
        learner.tell(placements, measurements)
        found += measurements.times(np.inf).tolist()
    return np.array(found)


def falls(run: Row) -> bool:
    """True if the mean of its last samples is below that of its first."""
    return bool(run["last_mean"] < run["first_mean"])
