"""`situate plan --layout`: training runs of language models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from situate.cli.answer import print_json, print_table
from situate.cli.option_groups import refuse_others
from situate.cli.terminal import INFEASIBLE
from situate.errors import SituateError
from situate.language.training.launch import commands
from situate.language.training.layout import parse_layout
from situate.language.training.machine import Machine, find_machine
from situate.language.training.pricing import price
from situate.language.training.transformer import Transformer, read_transformer
from situate.report.training import price_figures, price_table

if TYPE_CHECKING:
    from situate.cli.search_options import OutputOptions, ProblemOptions

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
    """`situate plan --layout`: the figures of a layout.

    Raises:
        SituateError: the model, the cluster or the layout is impossible.
    """
    refuse_others(context, ALLOWED, REASON)
    model, machine = _read(path, problem)
    run = parse_layout(layout, model, machine.count)
    figures = price(model, run, machine)
    lines = commands(model, run, machine)
    if outputs.as_json:
        print_json({"model": model.name, **price_figures(figures), "commands": lines})
    else:
        print_table(price_table(model, machine.name, figures, lines))
    return 0 if figures.fits else INFEASIBLE


def _read(path: str, problem: ProblemOptions) -> tuple[Transformer, Machine]:
    """The model and the machine of the options."""
    if problem.cluster is None:
        raise SituateError(
            f"{path[:60]}: give --cluster: a preset, a TOML file, or GPUs such as 2x8xH100"
        )
    return read_transformer(path), find_machine(problem.cluster)
