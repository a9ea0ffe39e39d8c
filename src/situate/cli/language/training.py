"""Training runs of language models: `situate plan --layout` and `situate fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from situate.cli.answer import print_json, print_table
from situate.cli.language.layout_steps import StepPlanner
from situate.cli.language.training_models import find_transformer
from situate.cli.option_groups import refuse_others
from situate.cli.terminal import INFEASIBLE
from situate.errors import SituateError
from situate.language.training.launch import commands
from situate.language.training.layout_text import AUTO, parse_layout, parse_request
from situate.language.training.machine import Machine, find_machine
from situate.language.training.pricing import Price, price
from situate.language.training.search import Choice, default_batch, search
from situate.language.training.steps.division import equal_division, unequal_division
from situate.language.training.steps.graph import step_graph
from situate.language.training.steps.site import find_site
from situate.language.training.transformer import Transformer
from situate.language.training.unequal import Shares, unequal_shares
from situate.report import training as report
from situate.report.training_steps import SimulatedStep, step_figures

if TYPE_CHECKING:
    from situate.cli.search_options import OutputOptions, ProblemOptions, SearchBudget
    from situate.data.graph import Graph
    from situate.language.training.layout import Run

ALLOWED = (
    *("model", "cluster", "layout", "as_json", "config"),
    *("out", "picture", "schedule", "report"),
    *("time_limit", "evaluations", "seed", "threads"),
)
"""Options of plans with a layout."""

COMPARED = ("model", "cluster", "layout", "as_json", "config")
"""Options of comparisons of layouts."""

REASON = "has no meaning for a training run, whose options are in --layout: leave it out"

PLANNED = 3
"""Best layouts that are planned as graphs of all GPUs."""


def plan_training(
    context: typer.Context,
    path: str,
    problem: ProblemOptions,
    layout: str,
    budget: SearchBudget,
    outputs: OutputOptions,
) -> int:
    """`situate plan --layout`: the figures of a layout, or the fastest layouts.

    Raises:
        SituateError: the model, the cluster or the layout is impossible.
    """
    refuse_others(context, ALLOWED, REASON)
    outputs.check([path, problem.cluster])
    model, machine = _inputs(path, problem.cluster)
    planner = StepPlanner(model, str(problem.cluster), machine.is_equal, budget)
    if layout.partition(",")[0].strip() == AUTO:
        status = _search(model, machine, layout, planner, outputs.as_json)
    else:
        status = _price(model, machine, layout, planner, outputs.as_json)
    planner.write(outputs)
    return status


def _price(
    model: Transformer, machine: Machine, layout: str, planner: StepPlanner, as_json: bool
) -> int:
    """`--layout` with one layout."""
    run = parse_layout(layout, model, machine.count)
    figures = price(model, run, machine)
    step = planner.simulate(run, equal_division(model, run.layout))
    lines = commands(model, run, machine)
    if as_json:
        content = {"model": model.name, **report.price_figures(figures), "commands": lines}
        print_json(content | {"simulated": step_figures(step)})
    else:
        print_table(report.price_table(model, machine.name, figures, lines, step))
    return 0 if figures.may_fit else INFEASIBLE


def compare_trainings(
    context: typer.Context,
    path: str,
    problem: ProblemOptions,
    layouts: str,
    outputs: OutputOptions,
) -> int:
    """`situate compare --layout`: layouts side by side, with semicolons between them.

    Raises:
        SituateError: the model, the cluster or a layout is impossible.
    """
    refuse_others(context, COMPARED, REASON)
    model, machine = _inputs(path, problem.cluster)
    rows: list[Price] = []
    for text in filter(None, (piece.strip() for piece in layouts.split(";"))):
        if text.partition(",")[0].strip() == AUTO:
            run, batch = parse_request(text, model)
            rows += search(model, run, machine, batch or default_batch(machine), 1).best
        else:
            rows.append(price(model, parse_layout(text, model, machine.count), machine))
    if not rows:
        raise SituateError("--layout: has no layout that fits: give layouts beside auto")
    rows.sort(key=lambda row: (not row.fits, not row.may_fit, row.seconds / row.tokens))
    if outputs.as_json:
        print_json({"model": model.name, "layouts": [report.price_figures(row) for row in rows]})
    else:
        print_table(report.comparison_table(model, machine.name, rows))
    return 0 if rows[0].may_fit else INFEASIBLE


def layout_graph(path: str, cluster: str | None, layout: str) -> Graph:
    """The step of a layout as a graph, for `situate convert`.

    Raises:
        SituateError: the model, the cluster or the layout is impossible, or the step too large.
    """
    if layout.partition(",")[0].strip() == AUTO:
        raise SituateError(
            "--layout: 'situate plan --layout auto' chooses: give a layout it prints"
        )
    model, machine = _inputs(path, cluster)
    run = parse_layout(layout, model, machine.count)
    site = find_site(str(cluster))
    return step_graph(model, run, site, equal_division(model, run.layout)).graph


def _inputs(path: str, cluster: str | None) -> tuple[Transformer, Machine]:
    """The model and the machine of the options."""
    if cluster is None:
        raise SituateError(
            f"{path[:60]}: give --cluster: a preset, a TOML file, or GPUs such as 2x8xH100"
        )
    return find_transformer(path), find_machine(cluster)


def _search(
    model: Transformer, machine: Machine, text: str, planner: StepPlanner, as_json: bool
) -> int:
    """`--layout auto`."""
    run, batch = parse_request(text, model)
    batch = batch or default_batch(machine)
    choice = search(model, run, machine, batch)
    shares = [] if machine.is_equal else unequal_shares(model, run, machine, batch)
    lines = commands(model, choice.best[0].run, machine) if choice.best else {}
    steps = _simulated(model, choice, planner, PLANNED if machine.is_equal else 1)
    for row in shares:
        step = planner.simulate(run, unequal_division(model, row, batch))
        steps.append((f"{row.way} {':'.join(map(str, row.shares))}", row.seconds, step))
    if as_json:
        figures = _figures(model, run, choice, shares, lines)
        rows = [
            {"layout": name, "formulas": seconds, "step": step_figures(step)}
            for name, seconds, step in steps
        ]
        print_json(figures | {"simulated": rows})
    else:
        print_table(report.choice_table(model, machine, choice, shares, lines, steps))
    return 0 if choice.best or shares else INFEASIBLE


def _simulated(
    model: Transformer, choice: Choice, planner: StepPlanner, count: int
) -> list[tuple[str, float, SimulatedStep | None]]:
    """The steps of the layouts, as rows of `steps_table`.

    Layouts after the first `count` are simulated on GPUs that stand for all, and not searched.
    """
    steps: list[tuple[str, float, SimulatedStep | None]] = []
    for row in choice.best:
        layout = row.run.layout
        planned = len(steps) < count
        if (planned or not planner.searches) and (
            step := planner.simulate(row.run, equal_division(model, layout), not planned)
        ):
            steps.append((str(layout), row.seconds, step))
    return steps


def _figures(
    model: Transformer, run: Run, choice: Choice, shares: list[Shares], lines: dict[str, str]
) -> dict[str, Any]:
    return {
        "model": model.name,
        "sequence": run.sequence,
        "legal": choice.legal,
        "fitting": choice.fitting,
        "layouts": [report.price_figures(figure) for figure in choice.best],
        "smallest": choice.smallest and report.price_figures(choice.smallest),
        "unequal": [report.shares_figures(row) for row in shares],
        "commands": lines,
    }
