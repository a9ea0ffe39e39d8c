"""Changes of the planner's `paper` settings, and the learning of a candidate on a case."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.record import Row
from research.papers.cases import Case
from research.papers.runs import learnt
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers.learned import hierarchical
from situate.solvers.learned.hierarchical import PAPER, RELEASE, TUNED, HierarchicalSettings
from situate.solvers.learned.learner import Learner
from situate.solvers.learned.rewards import failure_seconds


@dataclass(frozen=True)
class Candidate:
    """Settings that differ from `MIXED` in `changes`.

    Attributes:
        name: the change.
        published: the value in `MIXED`, and its source.
        source: where the other value is from.
    """

    name: str
    published: str
    source: str
    changes: Mapping[str, Any]


MIXED = replace(
    PAPER,
    relu=False,
    decay=RELEASE.decay,
    noise=RELEASE.noise,
    pessimistic=RELEASE.pessimistic,
    late=RELEASE.late,
)
"""The networks and settings of the text with the release's where the text is silent, and with its
falling learning rate."""

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
    Candidate("no noise", "0.5; release", "`tuned`", {"noise": 0.0}),
    Candidate("entropy 10", "none; release", "–", {"entropy": 10.0}),
    Candidate("entropy 100", "none; release", "–", {"entropy": 100.0}),
    Candidate("rewards in standard deviations", "R - b; both", "`tuned`", {"normalise": True}),
    Candidate("first baseline, learning rate 0.001", "as above", "as above", SLOW),
    Candidate("these, temperature 1, C = 1", "as above", "as above", {**SLOW, **RELEASED}),
)
"""One published setting after the other, changed alone, and some together; `full version` is the
ICLR paper, `release` TensorFlow's controller, as docs/methods/hierarchical.md names them."""

PRESETS = {
    "paper": PAPER,
    "release": RELEASE,
    "release, measured placements": replace(RELEASE, redraw=False),
    "text and release mixed": MIXED,
    "tuned": TUNED,
}
"""Settings of the planner by name. The third is the release with the gradient of the placements
that were measured."""

PROBES = 4
"""Placements of one grouping by which a policy is looked at."""

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
    settings = replace(MIXED, **trial.candidate.changes)
    measurements = measure(settings, trial.case, trial.seed, trial.samples)
    return {
        "case": trial.case.name,
        "candidate": trial.candidate.name,
        "seed": trial.seed,
        "samples": trial.samples,
        **measurements,
    }


def measure(settings: HierarchicalSettings, case: Case, seed: int, samples: int) -> Row:
    """The figures of one run of the planner on one thread."""
    begin = time.perf_counter()
    problem = case.problem()
    learner = hierarchical.make(problem, settings, seed)
    machine = SimulatedMachine(problem, threads=1)
    first = measured(learner, machine, range(learner.batch))
    after = policy(learner)
    times = np.append(first, measured(learner, machine, range(learner.batch, samples)))
    result = dict(learnt(times, problem))
    return {
        "best": float(times.min()) if np.isfinite(times).any() else None,
        "start_mean": float(np.where(np.isfinite(first), first, failure_seconds(problem)).mean()),
        "first_mean": result["mean_curve"][0],
        **result,
        **{f"first_{name}": value for name, value in after.items()},
        **{f"last_{name}": value for name, value in policy(learner).items()},
        "seconds": round(time.perf_counter() - begin, 1),
    }


def measured(learner: Learner, machine: SimulatedMachine, samples: range) -> NDArray[np.float64]:
    """(s,) seconds of the samples of these numbers, which the learner asks for; infinite where a
    placement fails."""
    result: list[float] = []
    while len(result) < len(samples):
        placements = learner.ask(min(learner.batch, len(samples) - len(result)))
        measurements = machine.measure(placements, samples[len(result)])
        learner.tell(placements, measurements)
        result += measurements.times(np.inf).tolist()
    return np.array(result)


def policy(learner: Learner) -> Row:
    """The mean entropy of the placer's distributions of the groups that a grouping uses, in nats,
    and how many these are."""
    from torch import no_grad

    from situate.policies.arithmetic import arithmetic
    from situate.policies.seq2seq import entropy
    from situate.solvers.learned.hierarchical import HierarchicalLearner
    from situate.solvers.learned.sequence_learner import generator

    assert isinstance(learner, HierarchicalLearner)
    with arithmetic(), no_grad():
        drawn = learner.hierarchy.draw(PROBES, PROBES, generator(0))
        log_p = learner.hierarchy.placer.log_probs(drawn.memory, drawn.devices, drawn.allowed)
        # An empty group may go to one device alone.
        used = drawn.allowed[0].sum(1) > 1
        return {"entropy": float(entropy(log_p[:, used])), "groups": int(used.sum())}


def falls(run: Row) -> bool:
    """True if the mean of its last samples is below that of its first."""
    return bool(run["last_mean"] < run["first_mean"])
