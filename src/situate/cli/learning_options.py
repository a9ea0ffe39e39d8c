"""Options of learning: whether they apply, and what they mean for a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, get_args

from situate.cli.inputs import check_name
from situate.cli.search import Budget
from situate.errors import SituateError
from situate.evaluators.measurements import Evaluator
from situate.evaluators.steps import Steps
from situate.evaluators.workers.places import Place
from situate.grouping import GROUPINGS
from situate.solvers import LEARNERS, WITH_SETTINGS, WITH_WEIGHTS, WITH_WORKERS
from situate.solvers.learned.driver import SAMPLES
from situate.solvers.learned.learner import Learning, Settings

EVALUATORS = ("simulator", "hardware")

CLOCKS = ("virtual", "wall")

_TAKERS = {
    "samples": ("random",),
    "settings": WITH_SETTINGS,
    "weights": WITH_WEIGHTS,
    "workers": WITH_WORKERS,
}
"""By option, the methods that take it though they do not learn from measurements."""


@dataclass(frozen=True)
class LearningOptions:
    """The options of methods that learn, as typed; None where nothing was."""

    samples: int | None = None
    settings: str | None = None
    grouping: str | None = None
    groups: int | None = None
    noise: float | None = None
    study: str | None = None
    curves: str | None = None
    tensorboard: str | None = None
    evaluator: str | None = None
    workers: str | None = None
    controllers: int | None = None
    timeout: float | None = None
    weights: str | None = None
    clock: str | None = None
    stalest: int | None = None

    def check(self, methods: Sequence[str], objective: str) -> None:
        """Raise for unknown names, and for options that none of the methods takes."""
        if self.settings is not None:
            check_name(self.settings, get_args(Settings), "settings")
        if self.grouping is not None:
            check_name(self.grouping, GROUPINGS, "grouping")
        self._check_evaluator()
        self._check_weights(methods)
        learners = [method for method in methods if method in LEARNERS]
        if not learners:
            self._check_unused(methods)
        elif objective != "time":
            raise SituateError(
                f"method {learners[0]!r} learns from step times: it cannot plan for {objective}"
            )

    def _check_evaluator(self) -> None:
        if self.evaluator is not None:
            check_name(self.evaluator, EVALUATORS, "evaluator")
        if self.on_hardware and self.noise is not None:
            raise SituateError(
                "--noise: applies to simulated measurements only: leave it out with "
                "--evaluator hardware"
            )
        if self.workers is not None:
            Place.parse(self.workers)
        if self.clock is not None:
            check_name(self.clock, CLOCKS, "clock")
            if self.controllers is None:
                raise SituateError(
                    "--clock: is that of several controllers: give --controllers too"
                )
        if self.timeout is not None and not self.on_hardware:
            raise SituateError(
                "--timeout: applies with --evaluator hardware only: leave it out, or give that too"
            )

    def _check_weights(self, methods: Sequence[str]) -> None:
        if self.weights is not None and not set(methods) & set(WITH_WEIGHTS):
            raise SituateError(
                f"--weights: none of the methods brings a network that was trained before; those "
                f"that do: {', '.join(WITH_WEIGHTS)}"
            )

    @property
    def on_hardware(self) -> bool:
        """True if placements are run on this machine."""
        return self.evaluator == "hardware"

    @property
    def steps(self) -> Steps | None:
        """The steps that a measurement by workers on hardware is of."""
        return Steps() if self.settings == "paper" else None

    def _check_unused(self, methods: Sequence[str]) -> None:
        who = f"method {methods[0]!r} does not learn"
        for option, value in vars(self).items():
            takers = _TAKERS.get(option, ())
            if value is not None and not set(takers) & set(methods):
                raise SituateError(
                    f"--{option}: {who if len(methods) == 1 else 'none of the methods learns'} "
                    f"from measurements; those that do: {', '.join(LEARNERS)}"
                )

    def budget(self, method: str, methods: Sequence[str], budget: Budget) -> Budget:
        """A method's budget: methods that learn, and `random` beside them, measure as many
        placements. Where several are compared and `samples` was given, nothing else ends them."""
        counted = self.samples is not None or any(name in LEARNERS for name in methods)
        if method not in LEARNERS and not (method == "random" and counted):
            return budget
        samples = self.samples or SAMPLES
        if budget.evaluations is not None:
            samples = min(samples, budget.evaluations)
        free = self.samples is not None and len(methods) > 1
        return replace(budget, evaluations=samples, time_limit=None if free else budget.time_limit)

    def learning(self, study: Path | None = None, machine: Evaluator | None = None) -> Learning:
        """The settings that the solver is given."""
        return Learning(
            settings=cast(Settings, self.settings or "tuned"),
            grouping=self.grouping,
            groups=self.groups,
            noise=self.noise or 0.0,
            study=study,
            evaluator=machine,
            workers=None if self.on_hardware else self.workers,  # a machine brings its own
            controllers=self.controllers,
            clock="wall" if self.clock == "wall" else None,
            stalest=self.stalest,
        )

    def of_search(self, method: str) -> Learning:
        """The settings, weights and workers of a method that does not learn, if it takes any."""
        settings = self.settings if method in WITH_SETTINGS else None
        weights = self.weights if method in WITH_WEIGHTS else None
        workers = self.workers if method in WITH_WORKERS else None
        return Learning(
            settings=cast(Settings, settings or "tuned"), weights=weights, workers=workers
        )

    def study_of(self, method: str) -> Path | None:
        """The file of one of several methods, in the folder `study`, which is made."""
        if self.study is None or method not in LEARNERS:
            return None
        Path(self.study).mkdir(parents=True, exist_ok=True)
        return Path(self.study, f"{method}.study")
