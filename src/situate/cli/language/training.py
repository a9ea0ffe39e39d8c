"""Training runs of language models: `situate plan --layout` and `situate fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from situate.cli.answer import print_json, print_table
from situate.cli.option_groups import refuse_others
from situate.cli.terminal import INFEASIBLE
from situate.errors import SituateError
from situate.language.training.launch import commands
from situate.language.training.layout import AUTO, parse_layout, parse_request
from situate.language.training.machine import Machine, find_machine
from situate.language.training.pricing import Price, price
from situate.language.training.search import Choice, default_batch, search
from situate.language.training.transformer import Transformer, read_transformer
from situate.language.training.unequal import Shares, unequal_shares
from situate.report import training as report

if TYPE_CHECKING:
    from situate.cli.search_options import OutputOptions, ProblemOptions
    from situate.language.training.layout import Run

ALLOWED = ("model", "cluster", "layout", "as_json", "config")
"""Options of plans with a layout."""

REASON = "has no meaning for a training run, whose options are in --layout: leave it out"


def plan_training(
    context: typer.Context,
    path: str,
    problem: ProblemOptions,
    layout: str,
    outputs: OutputOptions,
) -> int:
    """`situate plan --layout`: the figures of a layout, or the fastest layouts.

    Raises:
        SituateError: the model, the cluster or the layout is impossible.
    """
    refuse_others(context, ALLOWED, REASON)
    model, machine = _inputs(path, problem)
    if layout.partition(",")[0].strip() == AUTO:
        return _search(model, machine, layout, outputs.as_json)
    run = parse_layout(layout, model, machine.count)
    figures = price(model, run, machine)
    lines = commands(model, run, machine)
    if outputs.as_json:
        print_json({"model": model.name, **report.price_figures(figures), "commands": lines})
    else:
        print_table(report.price_table(model, machine.name, figures, lines))
    return 0 if figures.fits else INFEASIBLE


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
    refuse_others(context, ALLOWED, REASON)
    model, machine = _inputs(path, problem)
    rows: list[Price] = []
    for text in filter(None, (piece.strip() for piece in layouts.split(";"))):
        if text.partition(",")[0].strip() == AUTO:
            run, batch = parse_request(text, model)
            rows += search(model, run, machine, batch or default_batch(machine), 1).best
        else:
            rows.append(price(model, parse_layout(text, model, machine.count), machine))
    if not rows:
        raise SituateError("--layout: has no layout that fits: give layouts beside auto")
    rows.sort(key=lambda row: (not row.fits, row.seconds / row.tokens))
    if outputs.as_json:
        print_json({"model": model.name, "layouts": [report.price_figures(row) for row in rows]})
    else:
        print_table(report.comparison_table(model, machine.name, rows))
    return 0 if rows[0].fits else INFEASIBLE


def _inputs(path: str, problem: ProblemOptions) -> tuple[Transformer, Machine]:
    """The model and the machine of the options."""
    if problem.cluster is None:
        raise SituateError(
            f"{path[:60]}: give --cluster: a preset, a TOML file, or GPUs such as 2x8xH100"
        )
    return read_transformer(path), find_machine(problem.cluster)


def _search(model: Transformer, machine: Machine, text: str, as_json: bool) -> int:
    """`--layout auto`."""
    run, batch = parse_request(text, model)
    batch = batch or default_batch(machine)
    choice = search(model, run, machine, batch)
    shares = [] if machine.is_equal else unequal_shares(model, run, machine, batch)
    lines = commands(model, choice.best[0].run, machine) if choice.best else {}
    if as_json:
        print_json(_figures(model, run, choice, shares, lines))
    else:
        print_table(report.choice_table(model, machine, choice, shares, lines))
    return 0 if choice.best or shares else INFEASIBLE


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
