"""Answers on stdout: tables for people, or one JSON object."""

from __future__ import annotations

import codecs
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.text import Text

from situate.cli.terminal import INFEASIBLE, note
from situate.data.problem import Problem
from situate.files.atomic import write_bytes
from situate.files.strict_json import json_bytes
from situate.report.forecast import Forecast, forecast
from situate.report.forecast_table import forecast_table
from situate.report.learning_curve import learning_figures
from situate.report.slices.choice import by_slices, choice_table
from situate.report.tables import comparison, least_width, never_text, over_text, summary
from situate.results.choice import Choice
from situate.results.result import Result
from situate.schedule.schedule import Schedule
from situate.solvers import LEARNERS

if TYPE_CHECKING:
    from situate.cli.search_options import OutputOptions

WIDTH, HEIGHT = 160, 25
"""Columns and lines of an answer in a file or a pipe."""


def print_table(table: RenderableType) -> None:
    """Print a table, without colours off a terminal. On a narrow terminal lines may break, so that
    no number is cut off."""
    console = _console(None if sys.stdout.isatty() else WIDTH)
    for part in _parts(table):
        least = least_width(part)
        (console if least <= console.width else _console(least)).print(part)


def write_and_print(
    outputs: OutputOptions, content: object, figures: object, table: RenderableType
) -> None:
    """Write the file of a plan, if there is one, and print its figures as JSON or its table."""
    try:
        if outputs.out is not None:
            write_bytes(outputs.out, json_bytes(content))
    finally:  # a full disk must not lose the answer
        print_json(figures) if outputs.as_json else print_table(table)


def _console(width: int | None) -> Console:
    """A console of a width, or of the terminal's size."""
    # rich ignores a width without a height on a dumb terminal.
    height = None if width is None else HEIGHT
    return Console(width=width, height=height, highlight=False, markup=False, emoji=False)


def _parts(table: RenderableType) -> Iterator[RenderableType]:
    """The tables in a group, and in its groups."""
    if not isinstance(table, Group):
        yield table
        return
    for part in table.renderables:
        yield from _parts(part)


def print_json(content: object) -> None:
    """Print one JSON object, with null for infinite numbers and NaN.

    It is UTF-8, or ASCII if stdout has another encoding.
    """
    # msgspec writes infinite numbers and NaN as null, json would write words that are no JSON.
    text = msgspec.json.format(msgspec.json.encode(content), indent=2).decode()
    # `lookup` knows every spelling of an encoding's name.
    print(text if codecs.lookup(sys.stdout.encoding).name == "utf-8" else _escaped(text))


def _escaped(text: str) -> str:
    """JSON in ASCII; other characters occur in its strings only."""
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
    """Bytes above the limit, by device that is too small."""
    sizes = zip(problem.cluster.names, schedule.overflow(problem).tolist(), strict=True)
    return {name: size for name, size in sizes if size}


def _choice_figures(choice: Choice | None) -> dict[str, Any]:
    """The cuts of the batch that a choice of slices tried."""
    if choice is None:
        return {}
    trials = [
        {
            "slices": list(trial.samples) or None,
            "value": trial.result.value if trial.result else None,
            "lower_bound": trial.result.lower_bound if trial.result else None,
            "feasible": trial.result.feasible if trial.result else None,
            "left_out": trial.left_out or None,
        }
        for trial in choice.tried
    ]
    return {"tried": trials, "capturing": choice.capturing, "uncut": choice.uncut or None}


def show_result(result: Result, as_json: bool, choice: Choice | None = None) -> None:
    """Print a plan's figures, and the slices that a choice tried."""
    if as_json:
        print_json(_result_figures(result) | _choice_figures(choice))
        return
    print_table(summary(result))
    if choice is not None and len(choice.tried) > 1:
        print_table(Group(Text(), choice_table(choice)))


def show_forecast(result: Result, as_json: bool) -> None:
    """Print the memory and time that a plan needs."""
    prediction = forecast(result.problem, result.schedule, result.method)
    if as_json:
        print_json(_forecast_figures(prediction))
    else:
        print_table(forecast_table(prediction))


def _forecast_figures(prediction: Forecast) -> dict[str, Any]:
    """A forecast: times in the graph's unit, sizes in bytes."""
    return {
        "graph": prediction.graph,
        "cluster": prediction.cluster,
        "method": prediction.method,
        "unit": prediction.unit,
        "makespan": prediction.makespan,
        "low": prediction.bar.low,
        "high": prediction.bar.high,
        "period": prediction.period,
        "sources": prediction.bar.shares,
        "fits": prediction.fits,
        "devices": {
            device.name: asdict(device.content)
            | {"peak": device.peak, "limit": device.limit, "fits": device.fits}
            for device in prediction.devices
        },
    }


def show_comparison(
    results: Sequence[Result], best: Result, as_json: bool, choices: Mapping[str, Choice]
) -> None:
    """Print the figures of several methods' plans, and the slices that each method tried."""
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
    """The exit status of a plan: as `fit_status`, or that of a measured plan that did not run."""
    status = fit_status(result.problem, result.schedule)
    if result.measured is None or math.isfinite(result.measured):
        return status
    note("the plan did not run on this machine")
    return INFEASIBLE


def fit_status(problem: Problem, schedule: Schedule) -> int:
    """The exit status of a schedule: 0 if it can run; else a note on stderr gives the reason."""
    if not math.isfinite(schedule.makespan):
        note("not a valid plan: calls of its devices wait for one another")
        return INFEASIBLE
    if not schedule.feasible(problem):
        over, never = over_text(problem, schedule).removeprefix("no: "), never_text(problem)
        note(f"does not fit in memory: {over}{never and f'; no plan can: {never}'}")
        return INFEASIBLE
    return 0
