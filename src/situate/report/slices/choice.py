"""The ways of cutting a batch that were tried, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from situate.data.slices import shares_text
from situate.report.tables import OBJECTIVES, over_text, table
from situate.report.text import printable
from situate.report.units import gap_text, time_text, value_text
from situate.results.choice import Choice, Tried
from situate.results.result import Result

NONE = "-"
"""A cell of what was not planned."""


def choice_table(choice: Choice) -> RenderableType:
    """One row a way of cutting the batch, the one that was chosen marked."""
    made = table("", f"slices|{OBJECTIVES[choice.result.problem.objective]}|gap|fits", (1, 2))
    for tried in choice.tried:
        made.add_row(*_cells(tried), style="bold green" * _is_chosen(tried, choice))
    return Group(Text("slices that were tried", "bold"), made, Text(_captured(choice), "dim"))


def _cells(tried: Tried) -> tuple[str | Text, ...]:
    name, result = shares_text(tried.samples), tried.result
    if result is None:
        return name, NONE, NONE, Text(printable(tried.left_out), "dim")
    fits = "yes" if result.feasible else printable(over_text(result.problem, result.schedule))
    return name, _value(result), gap_text(result.gap), fits


def by_slices(choices: Mapping[str, Choice]) -> RenderableType:
    """The values of each method's plans, the best first, by the way of cutting the batch."""
    columns = dict.fromkeys(tried.samples for c in choices.values() for tried in c.tried)
    planned = [s for s in columns if any(_of(c, s) for c in choices.values())]
    names = "|".join(map(shares_text, planned))
    made = table("", f"by slices|{names}", range(1, len(planned) + 1))
    for method, choice in sorted(choices.items(), key=lambda item: item[1].result.rank):
        made.add_row(method, *(_cell(_of(choice, samples)) for samples in planned))
    return made


def _of(choice: Choice, samples: tuple[int, ...]) -> Result | None:
    return next((tried.result for tried in choice.tried if tried.samples == samples), None)


def _cell(result: Result | None) -> Text:
    """The value of a plan; dim where it does not fit."""
    if result is None:
        return Text(NONE, "dim")
    return Text(_value(result), "" if result.feasible else "red")


def _is_chosen(tried: Tried, choice: Choice) -> bool:
    return tried.result is not None and tried.result.problem is choice.result.problem


def _value(result: Result) -> str:
    problem = result.problem
    return value_text(result.value, problem.objective, problem.graph.unit)


def _captured(choice: Choice) -> str:
    return f"captured in {time_text(choice.capturing)}, which the search does not count"
