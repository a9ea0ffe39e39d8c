"""Plans of sharding problems: one strategy for each op, or stages of layers with their degrees."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from situate.cli.answer import write_and_print
from situate.cli.option_groups import refuse_others
from situate.cli.outputs import check_outputs
from situate.cli.terminal import INFEASIBLE, note, working
from situate.report.sharding.stages import stage_figures, stage_table
from situate.report.sharding.strategies import sharding_figures, sharding_table
from situate.sharding import (
    ShardingPlan,
    ShardingProblem,
    read_sharding_problem,
    read_stage_problem,
    solve_sharding,
    solve_stages,
)

if TYPE_CHECKING:
    from situate.cli.search_options import OutputOptions, SearchBudget

STAGE_OPTIONS = ("model", "time_limit", "out", "as_json", "config")
SHARDING_OPTIONS = (*STAGE_OPTIONS, "evaluations", "seed", "threads")
"""Options that problems of stages and of strategies have."""

SECONDS = 60.0
"""The default time limit."""


def plan_sharding(
    context: typer.Context, path: str, budget: SearchBudget, outputs: OutputOptions
) -> int:
    """Choose the strategies of the problem in a file, and print them or write them.

    Raises:
        SituateError: an option of other models, or a file that cannot be read or written.
    """
    reason = "has no meaning for a sharding problem, whose costs are in its file: leave it out"
    refuse_others(context, SHARDING_OPTIONS, reason)
    check_outputs([path], [outputs.out])
    begin = time.monotonic()
    problem = read_sharding_problem(path)
    limit = SECONDS if budget.evaluations is None else None
    if budget.time_limit is not None:
        # As in the contest, the limit includes the time to read the file.
        limit = max(0.0, budget.time_limit - (time.monotonic() - begin))
    with working(f"choosing strategies of {problem.name}"):
        plan = solve_sharding(
            problem,
            time_limit=limit,
            rounds=budget.evaluations,
            seed=budget.seed,
            threads=budget.threads,
        )
    if plan.interrupted:
        note("interrupted: these are the best strategies so far")
    figures, table = sharding_figures(problem, plan), sharding_table(problem, plan)
    write_and_print(outputs, _file(problem, plan), figures, table)
    return 0 if plan.feasible else INFEASIBLE


def _file(problem: ShardingProblem, plan: ShardingPlan) -> dict[str, object]:
    figures = {key: value for key, value in asdict(plan).items() if key != "interrupted"}
    return {"format": "situate-sharding", "version": 1, "problem": problem.name} | figures


def plan_stages(
    context: typer.Context, path: str, budget: SearchBudget, outputs: OutputOptions
) -> int:
    """Choose the stages of the problem in a file, and print them or write them.

    Raises:
        SituateError: an option of other models, or a file that cannot be read or written.
    """
    reason = "has no meaning for a problem of stages, whose devices are in its file: leave it out"
    refuse_others(context, STAGE_OPTIONS, reason)
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
