"""Layouts as graphs: the steps of the best ones, simulated and searched."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from situate.cli.outputs import write_outputs, write_report
from situate.cli.terminal import note, working
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.language.training.layout import Run
from situate.language.training.machine import find_machine
from situate.language.training.steps.division import Division
from situate.language.training.steps.graph import step_graph
from situate.language.training.steps.representatives import is_too_large, representatives
from situate.language.training.steps.site import Site, find_site
from situate.language.training.transformer import Transformer
from situate.report.training_steps import SimulatedStep
from situate.solvers.starts import StartedPlan, plan_from

if TYPE_CHECKING:
    from situate.cli.search_options import OutputOptions, SearchBudget

UNEQUAL_SECONDS = 5.0
"""Seconds of the search from a layout of unequal GPUs, where no time limit is typed."""


class StepPlanner:
    """Steps of layouts in turn, with the plan of the fastest.

    Args:
        model: the transformer.
        cluster: its name, as typed.
        is_equal: all its GPUs are equal.
        budget: limits, seed and threads of the search.
    """

    def __init__(
        self, model: Transformer, cluster: str, is_equal: bool, budget: SearchBudget
    ) -> None:
        self._model, self._cluster, self._is_equal = model, cluster, is_equal
        self._budget = budget
        self._best: StartedPlan | None = None

    @cached_property
    def _site(self) -> Site:
        return find_site(self._cluster)

    def simulate(self, run: Run, division: Division, briefly: bool = False) -> SimulatedStep | None:
        """The figures of a layout's step; None, with a note, if even the fewest GPUs that stand for
        all have too many ops, or an op fits no GPU.

        Args:
            run: sequence and recipe.
            division: the layout with its shares.
            briefly: on the fewest GPUs that stand for all, if they are equal.
        """
        run = replace(run, layout=division.layout)
        try:
            site, part = self._place(division, briefly)
            step = step_graph(self._model, run, site, part)
            problem = Problem(step.graph, site.cluster)
        except SituateError as error:
            note(f"{division.layout} is not simulated: {error}")
            return None
        with working("simulating"):
            plan = plan_from(
                problem,
                step.placement,
                step.order,
                time_limit=self._seconds,
                evaluations=self._budget.evaluations,
                moves=not self._is_equal,
                seed=self._budget.seed,
                threads=self._budget.threads,
            )
        if not briefly and (self._best is None or plan.result.rank < self._best.result.rank):
            self._best = plan
        return SimulatedStep(
            ops=problem.n,
            seconds=plan.start.makespan,
            best=plan.result.makespan if self.searches else None,
            floor=plan.floor,
            gap=plan.gap,
            peak=int(plan.start.peak.max()),
            devices=part.devices,
            gpus=division.devices,
        )

    def _place(self, division: Division, briefly: bool) -> tuple[Site, Division]:
        """Where a step is simulated: the cluster, or GPUs that stand for all of it."""
        if self._is_equal and (briefly or is_too_large(division)):
            return representatives(find_machine(self._cluster), division)
        return self._site, division

    @property
    def _seconds(self) -> float | None:
        """Seconds of the search from one layout; None for no limit, or no search."""
        if self._is_equal or self._searches_as_typed:
            return self._budget.time_limit
        return UNEQUAL_SECONDS

    @property
    def _searches_as_typed(self) -> bool:
        return self._budget.time_limit is not None or self._budget.evaluations is not None

    @property
    def searches(self) -> bool:
        """True if a search starts from each layout."""
        return self._searches_as_typed or not self._is_equal

    def write(self, outputs: OutputOptions) -> None:
        """Write the files of the fastest plan."""
        from situate.report.view.plan_report import PlanReport

        if self._best is None:
            paths = (outputs.out, outputs.picture, outputs.schedule, outputs.report)
            for path in filter(None, paths):
                note(f"did not write {path}: no layout is simulated")
            return
        write_outputs(self._best.result, outputs.out, outputs.picture, outputs.schedule)
        write_report([PlanReport.of_result(self._best.result)], outputs.report)
