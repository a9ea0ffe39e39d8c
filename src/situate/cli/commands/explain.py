"""`situate explain`: the critical path of a plan, and the contents of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli import names
from situate.cli.config_file import with_config
from situate.cli.language.options import ExplainedLanguageOptions, is_language
from situate.cli.option_groups import with_options
from situate.cli.search_options import (
    ExplainedProblemOptions,
    ExplanationOutputs,
    Method,
    SearchBudget,
)
from situate.cli.step_options import ExplainedStepOptions
from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.cli.search_options import ProblemOptions
    from situate.cli.step_options import StepOptions
    from situate.data.problem import Problem
    from situate.report.view.plan_report import PlanReport
    from situate.results.result import Result
    from situate.schedule.schedule import Schedule

SEARCH_OPTIONS = (
    *("objective", "method", "rules", "time_limit", "evaluations", "seed", "threads"),
    "progress",
    *("slices", "slice_dim", "slice_loss", "check", "batch_norm", "sums", "replicas", "once"),
    "recompute",
    "cuts",
)
"""Options that a finished plan has settled."""


@with_config
@with_options
def explain(
    call: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="The model to plan, as 'plan' takes it, or the model of PLAN. Leave it out if "
            "PLAN names a network of the zoo or a function.",
            autocompletion=names.complete(names.networks),
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Argument(
            metavar="PLAN", help="A file that 'plan --out' wrote; without it, plan first."
        ),
    ] = None,
    *,
    problem: ExplainedProblemOptions,
    method: Method = "auto",
    budget: SearchBudget,
    step: ExplainedStepOptions,
    language: ExplainedLanguageOptions,
    outputs: ExplanationOutputs,
) -> int:
    """Show where a plan's time goes, its costliest transfers, and the contents of memory.

    If the plan does not fit, it shows by how much, where, and how much more memory would do. A plan
    of a network of the zoo or of a function needs no MODEL, and one for a preset no --cluster.
    """
    import msgspec

    from situate.cli.answer import fit_status, print_json, print_table
    from situate.cli.inputs import model_and_plan, read_planned
    from situate.cli.language.commands import explain_language_model
    from situate.cli.names import check_method
    from situate.cli.outputs import draw_picture, write_report, write_schedule
    from situate.report.explain import explain as explanation_of
    from situate.report.explanation_table import explanation_table

    check_method(method)
    model, plan = model_and_plan(model, plan)
    if is_language(model):
        return explain_language_model(call, model, plan, problem, language, outputs.as_json)
    language.refuse()
    outputs.check([model, plan, problem.cluster, problem.costs], budget.progress)
    result = None
    if plan is not None:
        _check_no_search(call)
        cluster, costs = problem.cluster, problem.costs
        instance, schedule = read_planned(model, plan, cluster, costs, step.capture())
    else:
        result = _searched(model, method, problem, step, budget)
        instance, schedule = result.problem, result.schedule
    explanation = explanation_of(instance, schedule)
    try:
        write_schedule(instance, schedule, outputs.schedule)
        draw_picture(instance, schedule, outputs.picture)
        if outputs.report is not None:
            report = _report(plan, result, instance, schedule)
            write_report([report], outputs.report)
    finally:
        if outputs.as_json:
            print_json(_names(instance) | msgspec.to_builtins(explanation))
        else:
            print_table(explanation_table(explanation))
    return fit_status(instance, schedule)


def _report(
    path: str | None, result: Result | None, problem: Problem, schedule: Schedule
) -> PlanReport:
    """The report of a search's result, or of the plan in a file."""
    from pathlib import Path

    from situate.report.view.plan_report import PlanReport
    from situate.results.plan import Plan

    if result is not None:
        return PlanReport.of_result(result)
    assert path is not None
    return PlanReport.of_plan(Path(path).stem, Plan.read(path), problem, schedule)


def _searched(
    model: str, method: str, problem: ProblemOptions, step: StepOptions, budget: SearchBudget
) -> Result:
    """The best plan of a search."""
    from situate.cli.learning_options import LearningOptions
    from situate.cli.live.progress_file import begin_progress
    from situate.cli.search import interruptible
    from situate.cli.step import print_slice_summary, read_step, run_step
    from situate.cli.terminal import note

    begin_progress(budget.progress)
    cuts = read_step(model, [method], problem, step)
    with interruptible() as interrupt:
        run = run_step(cuts, method, budget, LearningOptions())
    print_slice_summary(run.choice)
    if interrupt.came:
        note("interrupted: this is the best plan so far")
    return run.result


def _check_no_search(context: typer.Context) -> None:
    """
    Raises:
        SituateError: an option of a search stands beside a finished plan.
    """
    for name in SEARCH_OPTIONS:
        source = context.get_parameter_source(name)
        # `DEFAULT_MAP` has the options of a file that --config names.
        if source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP"):
            option = name.replace("_", "-")
            raise SituateError(f"--{option}: the plan is already made: leave out one of the two")


def _names(problem: Problem) -> dict[str, str]:
    """Names of the graph and cluster, the objective and the rules."""
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "objective": problem.objective,
        "rules": problem.rules.name,
    }
