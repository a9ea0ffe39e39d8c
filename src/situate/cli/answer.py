"""Answers on stdout: tables for people, or one JSON object in which every number is finite."""

from __future__ import annotations

import codecs
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.text import Text

from situate.cli.terminal import INFEASIBLE, note
from situate.data.problem import Problem
from situate.report.forecast import Forecast, forecast
from situate.report.forecast_table import forecast_table
from situate.report.learning_curve import learning_figures
from situate.report.slices.choice import by_slices, choice_table
from situate.report.tables import comparison, least_width, never_text, over_text, summary
from situate.results.choice import Choice
from situate.results.result import Result
from situate.schedule.schedule import Schedule
from situate.solvers import LEARNERS

WIDTH, HEIGHT = 160, 25
"""Columns and lines where the answer goes to a file or a pipe."""


def print_table(table: RenderableType) -> None:
    """Print for people; no colours off a terminal, and no number cut off on a narrow one, whose
    lines may then break."""
    console = _console(None if sys.stdout.isatty() else WIDTH)
    for part in _parts(table):
        least = least_width(part)
        (console if least <= console.width else _console(least)).print(part)


def _console(width: int | None) -> Console:
    """A console of the terminal's size, or of a width, which a dumb terminal needs a height for."""
    height = None if width is None else HEIGHT
    return Console(width=width, height=height, highlight=False, markup=False, emoji=False)


def _parts(table: RenderableType) -> Iterator[RenderableType]:
    """The parts of groups, and of groups in them."""
    if not isinstance(table, Group):
        yield table
        return
    for part in table.renderables:
        yield from _parts(part)


def print_json(content: object) -> None:
    """Print one JSON object; numbers that JSON has no word for are null.

    It is UTF-8; where stdout takes another encoding, it is ASCII, which that holds too.
    """
    text = msgspec.json.format(msgspec.json.encode(content), indent=2).decode()
    print(text if codecs.lookup(sys.stdout.encoding).name == "utf-8" else _escaped(text))


def _escaped(text: str) -> str:
    """JSON in ASCII: beyond that are only characters of strings."""
    return "".join(c if c.isascii() else json.dumps(c)[1:-1] for c in text)


def _result_figures(result: Result) -> dict[str, Any]:
    """The figures of a result: times in the graph's unit, sizes in bytes."""
    problem = result.problem
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "method": result.method,
        "knows": result.knows,
        "decoder": result.decoder,
        "objective": problem.objective,
        "rules": problem.rules.name,
        "unit": problem.graph.unit,
        "slices": list(problem.graph.slices.shares) if problem.graph.slices else None,
        "value": result.value,
        "lower_bound": result.lower_bound,
        "bounded_by": result.bounded_by,
        "gap": result.gap,
        "optimal": result.optimal,
        "feasible": result.feasible,
        "makespan": result.makespan,
        "expected": result.expected,
        "measured": result.measured,
        "throughput": result.throughput,
        "peak_memory": result.peak_memory,
        "overflow": _overflow(problem, result.schedule),
        "devices_used": result.devices_used,
        "evaluations": result.evaluations,
        "seconds": result.seconds,
        "seed": result.seed,
        "virtual_seconds": _virtual_seconds(result),
        "samples": learning_figures(result.samples) if result.method in LEARNERS else None,
    }


def _virtual_seconds(result: Result) -> float | None:
    course = result.asynchrony
    return course.seconds if course is not None and course.clock == "virtual" else None


def _overflow(problem: Problem, schedule: Schedule) -> dict[str, int]:
    """Bytes above the limit of each device that is too small."""
    over = zip(problem.cluster.names, schedule.overflow(problem).tolist(), strict=True)
    return {name: size for name, size in over if size}


def _choice_figures(choice: Choice | None) -> dict[str, Any]:
    """The ways of cutting the batch that were tried, where its slices were to be chosen."""
    if choice is None:
        return {}
    tried = [
        {
            "slices": list(each.samples) or None,
            "value": each.result.value if each.result else None,
            "lower_bound": each.result.lower_bound if each.result else None,
            "feasible": each.result.feasible if each.result else None,
            "left_out": each.left_out or None,
        }
        for each in choice.tried
    ]
    return {"tried": tried, "capturing": choice.capturing, "uncut": choice.uncut or None}


def show_result(result: Result, as_json: bool, choice: Choice | None = None) -> None:
    """A plan's figures, and what slices were tried where they were to be chosen."""
    if as_json:
        print_json(_result_figures(result) | _choice_figures(choice))
        return
    print_table(summary(result))
    if choice is not None and len(choice.tried) > 1:
        print_table(Group(Text(), choice_table(choice)))


def show_forecast(result: Result, as_json: bool) -> None:
    """Print the memory and time that a plan needs."""
    told = forecast(result.problem, result.schedule, result.method)
    if as_json:
        print_json(_forecast_figures(told))
    else:
        print_table(forecast_table(told))


def _forecast_figures(told: Forecast) -> dict[str, Any]:
    """A forecast: times in the graph's unit, sizes in bytes."""
    return {
        "graph": told.graph,
        "cluster": told.cluster,
        "method": told.method,
        "unit": told.unit,
        "makespan": told.makespan,
        "low": told.bar.low,
        "high": told.bar.high,
        "period": told.period,
        "sources": told.bar.shares,
        "fits": told.fits,
        "devices": {
            device.name: asdict(device.content)
            | {"peak": device.peak, "limit": device.limit, "fits": device.fits}
            for device in told.devices
        },
    }


def show_comparison(
    results: Sequence[Result], best: Result, as_json: bool, choices: Mapping[str, Choice]
) -> None:
    """The figures of several methods' plans, and what slices each was tried with where they were to
    be chosen."""
    if as_json:
        methods = [
            _result_figures(result) | _choice_figures(choices.get(result.method))
            for result in results
        ]
        print_json({"methods": methods, "best": best.method})
        return
    print_table(comparison(results))
    if any(len(choice.tried) > 1 for choice in choices.values()):
        print_table(Group(Text(), by_slices(choices)))


def result_status(result: Result) -> int:
    """As `fit_status`, and where the plan was measured whether it ran."""
    status = fit_status(result.problem, result.schedule)
    if result.measured is None or math.isfinite(result.measured):
        return status
    note("the plan did not run on this machine")
    return INFEASIBLE


def fit_status(problem: Problem, schedule: Schedule) -> int:
    """The exit status: 0 for a schedule that can be run; else stderr says why it cannot."""
    if not math.isfinite(schedule.makespan):
        note("not a valid plan: calls of its devices wait for one another")
        return INFEASIBLE
    if not schedule.feasible(problem):
        over, never = over_text(problem, schedule).removeprefix("no: "), never_text(problem)
        note(f"does not fit in memory: {over}{never and f'; no plan can: {never}'}")
        return INFEASIBLE
    return 0
