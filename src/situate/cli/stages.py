"""Plans of pipelines: stages of layers, with degrees of parallelism."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from situate.cli.answer import write_and_print
from situate.cli.option_groups import refuse_others
from situate.cli.outputs import check_outputs
from situate.cli.terminal import INFEASIBLE, note, working
from situate.report.sharding.stages import stage_figures, stage_table
from situate.sharding import read_stage_problem, solve_stages

if TYPE_CHECKING:
    from situate.cli.search_options import OutputOptions, SearchBudget

ALLOWED = ("model", "time_limit", "out", "as_json", "config")
"""Options that these problems have."""

REASON = "has no meaning for a problem of stages, whose devices are in its file: leave it out"

SECONDS = 60.0
"""The default time limit."""


def plan_stages(
    context: typer.Context, path: str, budget: SearchBudget, outputs: OutputOptions
) -> int:
    """Choose the stages of the problem in a file, and print them or write them.

    Raises:
        SituateError: an option of other models, or a file that cannot be read or written.
    """
    refuse_others(context, ALLOWED, REASON)
    check_outputs([path], [outputs.out])
    problem = read_stage_problem(path)
    with working(f"choosing stages of {problem.name}"):
        plan = solve_stages(
            problem, time_limit=SECONDS if budget.time_limit is None else budget.time_limit
        )
    if plan.interrupted:
        note("interrupted: these are the best stages so far")
    figures = stage_figures(problem, plan)
    content = {"format": "situate-stages", "version": 1} | figures
    write_and_print(outputs, content, figures, stage_table(problem, plan))
    return 0 if plan.feasible else INFEASIBLE
