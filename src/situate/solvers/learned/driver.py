"""The driver: turns any learner into a solver, with any evaluator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from situate.data.arrays import Placement
from situate.errors import SituateError
from situate.evaluators.measurements import OUTCOMES, Evaluator, HasWorkers
from situate.evaluators.simulated import SimulatedMachine
from situate.evaluators.steps import CountsSteps
from situate.evaluators.workers.places import Place
from situate.solvers.learned.checks import CheckedLearner, check_evaluator
from situate.solvers.learned.learner import Learning, MakeLearner
from situate.solvers.learned.rewards import PAPER_STEPS
from situate.solvers.learned.sampling import Sampling
from situate.solvers.learned.telemetry import Telemetry
from situate.solvers.registry import METHODS
from situate.solvers.search import Search
from situate.study.file import NoStudy, StudyFile
from situate.version import VERSION

if TYPE_CHECKING:
    from situate.solvers.learned.asynchronous.controllers import Controllers

SAMPLES = 2400
"""Samples if no number of evaluations is given (Post, section 4)."""

PLANNING_EVALUATIONS = 5000
"""Evaluations of `auto` for the plan to measure first; takes seconds on a thousand ops."""

REMEDIES = {
    "out_of_memory": "go on with more or larger devices, with another grouping, or with method "
    "'auto', which looks for a plan that fits first",
    "crash": "run a plan of one device first, to see what stops it",
    "timeout": "give a measurement more time",
    "nan": "run a plan of one device first, to see where its loss ceases to be a number",
}
"""Advice by outcome if no placement ran."""


def learn(
    search: Search,
    method: str,
    make: MakeLearner,
    learning: Learning,
    telemetry: Telemetry | None = None,
) -> Telemetry:
    """Ask, measure, save and tell until the budget ends; the plan is the best measured placement.

    Args:
        search: whose incumbent becomes that placement.
        method: name of the method.
        make: makes its learner.
        learning: its options.
        telemetry: collects the measurements; None for a new one.

    Returns:
        The telemetry.

    Raises:
        SituateError: an objective other than `time`; a study of another problem or method; an
            invalid answer of the learner or the evaluator.
    """
    problem, telemetry = search.problem, telemetry or Telemetry()
    if problem.objective != "time":
        raise SituateError(
            f"method {method!r} learns from step times: it cannot plan for {problem.objective}"
        )
    with _machine(search, method, learning, telemetry) as machine:
        _learn_from(machine, search, method, make, learning, telemetry)
    return telemetry


def _learn_from(
    machine: Evaluator,
    search: Search,
    method: str,
    make: MakeLearner,
    learning: Learning,
    telemetry: Telemetry,
) -> None:
    problem, samples = search.problem, search.budget.evaluation_limit or SAMPLES
    study: StudyFile | NoStudy = NoStudy()
    if learning.evaluator is not None and problem.costs is not None and learning.start is None:
        # The learner calls `start` when it first draws; the study is open by then.
        learning = replace(learning, start=lambda: _start(search, study))
    if learning.controllers is None:
        inner = make(problem, learning, samples, search.seed)
    else:
        inner = controllers = _controllers(search, method, make, learning, samples)
        telemetry.asynchrony = controllers.asynchrony
    learner = CheckedLearner(method, problem, inner)
    telemetry.knows = learner.knows
    with StudyFile.open(learning.study, _header(search, learning, learner, machine)) as opened:
        study = opened
        _sampling(learning)(search, learning, telemetry, learner, machine, study).run(samples)
    _warn_of_failures(telemetry, method)


def _sampling(learning: Learning) -> type[Sampling]:
    """The loop that a clock needs."""
    if learning.clock != "wall":
        return Sampling
    from situate.solvers.learned.asynchronous.wall_sampling import WallSampling

    return WallSampling


def _controllers(
    search: Search, method: str, make: MakeLearner, learning: Learning, samples: int
) -> Controllers:
    """Several controllers as one learner.

    Raises:
        SituateError: the method has one controller only, or there are fewer samples than
            controllers.
    """
    if method not in METHODS or not METHODS[method].asynchronous:
        names = ", ".join(name for name, other in METHODS.items() if other.asynchronous)
        raise SituateError(
            f"controllers: method {method!r} has one, which waits for what it asked for; those "
            f"that learn asynchronously: {names}"
        )
    assert learning.controllers is not None
    if learning.controllers > samples:
        raise SituateError(
            f"controllers: {learning.controllers} are more than the {samples} samples that they "
            "share: ask for fewer, or for more samples"
        )
    # Imported late: only controllers need PyTorch.
    from situate.solvers.learned.asynchronous.controllers import make_controllers

    return make_controllers(make, search.problem, learning, samples, search.seed)


@contextmanager
def _machine(
    search: Search, method: str, learning: Learning, telemetry: Telemetry
) -> Iterator[Evaluator]:
    """The evaluator, on workers if there are any."""
    simulated = partial(SimulatedMachine, search.problem, learning.noise, search.seed)
    evaluator, workers = learning.evaluator, learning.workers
    machine: Evaluator = simulated(search.threads) if evaluator is None else evaluator
    check_evaluator(machine)
    machine = _with_steps_of_paper(machine, method, learning)
    if workers is None:
        if isinstance(machine, HasWorkers):
            telemetry.workers = machine.progress
        yield machine
        return
    original, here = machine, None
    if evaluator is None:
        # A worker simulates on one thread; this process keeps its own machine for small batches.
        original, here = _with_steps_of_paper(simulated(1), method, learning), machine
    with Place.parse(workers).machine(original, here) as shared:
        telemetry.workers = shared.progress
        yield shared
        if failures := shared.counts.failures_text():
            warnings.warn(failures, stacklevel=2)


def _with_steps_of_paper(machine: Evaluator, method: str, learning: Learning) -> Evaluator:
    """The machine; in `paper` settings it takes the steps of the method's paper if it can."""
    steps = PAPER_STEPS.get(method) if learning.settings == "paper" else None
    return machine.by(steps) if steps and isinstance(machine, CountsSteps) else machine


def _start(search: Search, study: StudyFile | NoStudy) -> Placement:
    """The placement that a real machine with measured costs runs first: the plan of `auto`.

    A resumed study keeps its first plan, because a time limit may make `auto` find another.
    """
    placement = study.first()
    if placement is not None:
        return placement
    planning = Search(
        search.problem,
        search.lower_bound,
        budget=search.budget.beside(PLANNING_EVALUATIONS),
        seed=search.seed,
        threads=search.threads,
    )
    METHODS["auto"].run(planning)
    return planning.incumbent.placement


def _header(
    search: Search, learning: Learning, learner: CheckedLearner, machine: Evaluator
) -> dict[str, str]:
    """All settings that decide the samples; a study identifies its search by them."""
    problem, samples = search.problem, search.budget.evaluation_limit or SAMPLES
    costs = {"costs": problem.costs.hash} if problem.costs else {}
    shared = {} if learning.controllers is None else {"controllers": _controllers_text(learning)}
    learner_name = {} if learner.name is None else {"learner": learner.name}
    return {
        "graph": f"{problem.graph.name} {problem.graph.hash}",
        "cluster": f"{problem.cluster.name} {problem.cluster.hash}",
        "rules": problem.rules.name,
        "unit": problem.graph.unit,
        "method": learner.method,
        "settings": learning.settings,
        "grouping": str(learning.grouping),
        "groups": str(learning.groups),
        "samples": str(samples),
        "seed": str(search.seed),
        "evaluator": machine.name,
        "ops": str(problem.n),
        "devices": str(problem.d),
        "situate": VERSION,
        **costs,
        **shared,
        **learner_name,
    }


def _controllers_text(learning: Learning) -> str:
    """The number of controllers and their clock, in words."""
    stale = "" if learning.stalest is None else f", at most {learning.stalest} updates stale"
    return f"{learning.controllers}, {learning.clock or 'clock of their own'}{stale}"


def _warn_of_failures(telemetry: Telemetry, method: str) -> None:
    outcomes = np.concatenate(
        [m.outcome for m in telemetry.measurements] or [np.zeros(1, np.uint8)]
    )
    if (outcomes == 0).any():
        return
    kinds = [OUTCOMES[i] for i in np.unique(outcomes)]
    reasons = ", ".join(outcome.replace("_", " ") for outcome in kinds)
    remedies = "; ".join(REMEDIES[outcome] for outcome in kinds)
    warnings.warn(
        f"{method}: none of {len(outcomes)} placements ran ({reasons}), so there was nothing to "
        f"learn from; {remedies}",
        stacklevel=2,
    )
