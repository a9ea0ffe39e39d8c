"""Ways of cutting a batch, compared in tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from situate.bounds.load import least_load
from situate.data.problem import Problem
from situate.data.slices import shares_text
from situate.data.topology import accelerators
from situate.report.tables import OBJECTIVES, over_text, table
from situate.report.text import printable
from situate.report.units import gap_text, time_text, value_text
from situate.results.choice import Choice, SliceTrial
from situate.results.result import Result

NONE = "-"
"""A cell without a plan."""


def choice_table(choice: Choice) -> RenderableType:
    """One row a way of cutting the batch; the chosen row is marked."""
    grid = table("", f"slices|{OBJECTIVES[choice.result.problem.objective]}|gap|fits", (1, 2))
    for trial in choice.tried:
        grid.add_row(*_cells(trial), style="bold green" * _is_chosen(trial, choice))
    return Group(Text("slices that were tried", "bold"), grid, Text(_captured(choice), "dim"))


def _cells(trial: SliceTrial) -> tuple[str | Text, ...]:
    name, result = shares_text(trial.samples), trial.result
    if result is None:
        return name, NONE, NONE, Text(printable(trial.left_out), "dim")
    fits = "yes" if result.feasible else printable(over_text(result.problem, result.schedule))
    return name, _value(result), gap_text(result.gap), fits


def by_slices(choices: Mapping[str, Choice]) -> RenderableType:
    """The values of each method's plans, the best first, by the way of cutting the batch."""
    columns = dict.fromkeys(trial.samples for c in choices.values() for trial in c.tried)
    cuts = [s for s in columns if any(_of(c, s) for c in choices.values())]
    names = "|".join(map(shares_text, cuts))
    grid = table("", f"by slices|{names}", range(1, len(cuts) + 1))
    for method, choice in sorted(choices.items(), key=lambda item: item[1].result.rank):
        grid.add_row(method, *(_cell(_of(choice, samples)) for samples in cuts))
    return grid


def _of(choice: Choice, samples: tuple[int, ...]) -> Result | None:
    return next((trial.result for trial in choice.tried if trial.samples == samples), None)


def _cell(result: Result | None) -> Text:
    """The value of a plan; dim where it does not fit."""
    if result is None:
        return Text(NONE, "dim")
    return Text(_value(result), "" if result.feasible else "red")


def _is_chosen(trial: SliceTrial, choice: Choice) -> bool:
    return trial.result is not None and trial.result.problem is choice.result.problem


def _value(result: Result) -> str:
    problem = result.problem
    return value_text(result.value, problem.objective, problem.graph.unit)


def _captured(choice: Choice) -> str:
    return f"captured in {time_text(choice.capturing)}, which the search does not count"


# The gain of cutting a step's batch, for a plan without slices.
WORTH = 0.8
"""Share of a plan's makespan below which the bound of a step of slices is worth a line."""


def slicing_text(result: Result) -> str:
    """A line with the largest gain of slices and the option that cuts them.

    It is empty where the gain is small, the graph is no captured training step, or the user asked
    for a method by name.
    """
    problem = result.problem
    if result.method != "auto" or not _may_be_cut(problem) or not result.feasible:
        return ""
    least = least_load(problem).seconds
    if len(accelerators(problem)) < 2 or least > WORTH * result.makespan:
        return ""
    return (
        "every op works on the whole batch; in slices of it, with --slices auto, the step may take "
        f"{time_text(least, problem.graph.unit)} at best"
    )


def _may_be_cut(problem: Problem) -> bool:
    graph = problem.graph
    is_step = graph.source == "pytorch" and bool(graph.optimizer)
    return is_step and graph.slices is None and problem.objective == "time"
