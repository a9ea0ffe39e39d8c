"""One plan of a report: its schedule, its figures, and the texts about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, Group, RenderableType

from situate.bounds.lower_bound import bound_name
from situate.bounds.rounding import gap
from situate.data.problem import Problem
from situate.report.explain import explain
from situate.report.explanation_table import explanation_table
from situate.report.pictures.op_colors import op_classes
from situate.report.tables import OBJECTIVES, figures, least_width, over_text
from situate.report.text import printable
from situate.report.units import gap_text, size_text, time_text, value_text
from situate.report.view.bars import MAX_BARS, bars_of
from situate.report.view.bound_text import bound_text
from situate.report.view.graph_columns import graph_columns
from situate.report.view.plan_columns import plan_columns
from situate.schedule.schedule import Schedule

if TYPE_CHECKING:
    from situate.results.plan import Plan
    from situate.results.result import Result

MAX_NAMED_OPS = 20_000
"""Most ops of a plan from a file whose bound is computed again for its name."""
NAMING_SECONDS = 2.0
"""Seconds after which no other bound is computed for that."""
TEXT_WIDTH = 72
"""Columns of the explanation's text."""


@dataclass(frozen=True)
class MethodRow:
    """One row of the table of methods.

    Attributes:
        method: its name.
        value: the plan's objective; a text.
        number: the same as a number, for bars; infinite or NaN where there is none.
        gap, peak, devices, fits, search: texts.
    """

    method: str
    value: str
    number: float
    gap: str
    peak: str
    devices: str
    fits: str
    search: str


@dataclass(frozen=True, eq=False)
class PlanReport:
    """A plan to show.

    Attributes:
        label: a name that tells the plans of one page apart.
        problem, schedule: of the plan.
        figures: labels and texts.
        value, lower_bound: of the objective; None where unknown.
        bounded_by: the name of the bound; None where unknown.
        methods: the comparison that the plan comes from, if any.
    """

    label: str
    problem: Problem
    schedule: Schedule
    figures: tuple[tuple[str, str], ...]
    value: float | None
    lower_bound: float | None
    bounded_by: str | None
    methods: tuple[MethodRow, ...] = field(default=())

    @classmethod
    def of_result(cls, result: Result, others: Sequence[Result] = ()) -> PlanReport:
        """The report of a search's result, with a row for each result of a comparison."""
        return cls(
            label=result.method,
            problem=result.problem,
            schedule=result.schedule,
            figures=tuple(figures(result)),
            value=result.value,
            lower_bound=result.lower_bound,
            bounded_by=result.bounded_by,
            methods=tuple(_method_row(r) for r in sorted(others, key=lambda r: r.rank)),
        )

    @classmethod
    def of_plan(cls, label: str, plan: Plan, problem: Problem, schedule: Schedule) -> PlanReport:
        """The report of a plan from a file."""
        name = _bound_name(plan, problem)
        return cls(
            label=label,
            problem=problem,
            schedule=schedule,
            figures=tuple(_plan_figures(plan, problem, schedule, name)),
            value=plan.value,
            lower_bound=plan.lower_bound,
            bounded_by=name,
        )

    def columns(self, max_bars: int = MAX_BARS) -> tuple[dict[str, Any], dict[str, Any]]:
        """The columns of the graph and of the plan, as `block.encoded` takes them.

        Raises:
            ScheduleError: the schedule never ends.
        """
        problem, schedule = self.problem, self.schedule
        explanation = explain(problem, schedule)
        seconds = problem.seconds[np.arange(problem.n), schedule.placement]
        classes = op_classes(problem.graph.ops, seconds)
        bars = bars_of(problem, schedule, classes.of, max_bars)
        about = {
            "label": self.label,
            "cluster": problem.cluster.name,
            "objective": OBJECTIVES[problem.objective],
            "figures": [list(figure) for figure in self.figures],
            "fits": schedule.feasible(problem),
            "over": over_text(problem, schedule).removeprefix("no: "),
            "bound": bound_text(problem, self.value, self.lower_bound, self.bounded_by),
            "explanation": _lines(explanation_table(explanation)),
            "methods": [vars(row) | {"number": _number(row.number)} for row in self.methods],
            "bars": len(bars.first),
        }
        graph = graph_columns(problem, classes, bars)
        return graph, about | plan_columns(problem, schedule, bars)


def compared_reports(results: Sequence[Result]) -> list[PlanReport]:
    """The best of several methods' plans, with a row for each, and the second best beside it."""
    ranked = sorted((r for r in results if isfinite(r.makespan)), key=lambda result: result.rank)
    first = [PlanReport.of_result(result, results) for result in ranked[:1]]
    return first + [PlanReport.of_result(result) for result in ranked[1:2]]


def _bound_name(plan: Plan, problem: Problem) -> str | None:
    """The name of a plan's bound, which its file does not hold; None if it takes too long."""
    if plan.lower_bound is None or problem.n > MAX_NAMED_OPS:
        return None
    return bound_name(problem, plan.lower_bound, time.perf_counter() + NAMING_SECONDS)


def _plan_figures(
    plan: Plan, problem: Problem, schedule: Schedule, bounded_by: str | None
) -> list[tuple[str, str]]:
    unit, used = problem.graph.unit, len(set(schedule.placement.tolist()))
    value = float("inf") if plan.value is None else plan.value
    rows = [(OBJECTIVES[problem.objective], value_text(value, problem.objective, unit))]
    if plan.lower_bound is not None:
        bound = value_text(plan.lower_bound, problem.objective, unit)
        rows += [
            ("lower bound", f"{bound}, by {bounded_by}" if bounded_by else bound),
            ("gap", gap_text(gap(problem, value, plan.lower_bound))),
        ]
    if problem.objective != "time":
        rows.append(("makespan", time_text(schedule.makespan, unit)))
    fits = schedule.feasible(problem)
    return [
        *rows,
        ("fits in memory", "yes" if fits else over_text(problem, schedule)),
        ("devices used", f"{used} of {problem.d}"),
        ("method", f"{plan.method}, decoder {plan.decoder}"),
        ("rules", plan.rules),
        ("search", f"{plan.evaluations:,} evaluations in {plan.seconds:.2f} s"),
    ]


def _method_row(result: Result) -> MethodRow:
    problem = result.problem
    return MethodRow(
        method=result.method,
        value=value_text(result.value, problem.objective, problem.graph.unit),
        number=result.value,
        gap=gap_text(result.gap),
        peak=size_text(int(result.schedule.peak.max())),
        devices=str(len(result.devices_used)),
        fits="yes" if result.feasible else printable(over_text(problem, result.schedule)),
        search=f"{result.seconds:.2f} s",
    )


def _number(value: float) -> float | None:
    return value if isfinite(value) else None


def _lines(explanation: RenderableType) -> list[str]:
    """The lines of tables for the terminal, wider where numbers would be cut off."""
    text = StringIO()
    for part in explanation.renderables if isinstance(explanation, Group) else [explanation]:
        width = max(TEXT_WIDTH, least_width(part))
        # In a notebook a console would display the text there and leave the file empty.
        console = Console(
            file=text,
            width=width,
            height=1,
            force_jupyter=False,
            highlight=False,
            markup=False,
            emoji=False,
        )
        console.print(part)
    return [line.rstrip() for line in text.getvalue().splitlines()]
