"""`situate explain`: why a plan is as fast as it is, and what fills its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli import completions
from situate.cli.completions import of
from situate.cli.options import (
    BatchNorm,
    Check,
    ChosenOnce,
    ChosenRecompute,
    ChosenSlices,
    ChosenSums,
    Costs,
    Dim,
    Evaluations,
    Json,
    Method,
    ModelOrPlanOptimizer,
    Objective,
    Picture,
    PlannedCluster,
    Replicas,
    Rules,
    ScheduleFile,
    Seed,
    SliceDim,
    SliceLoss,
    Threads,
    TimeLimit,
)
from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.data.problem import Problem

SEARCHED = (
    *("objective", "method", "rules", "time_limit", "evaluations", "seed", "threads"),
    *(
        "slices",
        "slice_dim",
        "slice_loss",
        "check",
        "batch_norm",
        "sums",
        "replicas",
        "once",
        "recompute",
    ),
)
"""Options of the search for a plan, and of the step that is planned."""


def explain(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="What to plan, as 'plan' takes it, or what PLAN was made for. Not needed where "
            "PLAN names its network or function itself.",
            autocompletion=of(completions.networks),
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Argument(metavar="PLAN", help="A file that 'plan --out' wrote; else plan first."),
    ] = None,
    cluster: PlannedCluster = None,
    costs: Costs = None,
    objective: Objective = "time",
    method: Method = "auto",
    rules: Rules = None,
    time_limit: TimeLimit = None,
    evaluations: Evaluations = None,
    seed: Seed = 0,
    threads: Threads = None,
    optimizer: ModelOrPlanOptimizer = None,
    dim: Dim = None,
    slices: ChosenSlices = None,
    slice_dim: SliceDim = None,
    slice_loss: SliceLoss = None,
    check: Check = True,
    batch_norm: BatchNorm = None,
    sums: ChosenSums = None,
    replicas: Replicas = None,
    once: ChosenOnce = None,
    recompute: ChosenRecompute = None,
    picture: Picture = None,
    schedule: ScheduleFile = None,
    as_json: Json = False,
) -> int:
    """Show where a plan's time goes, its costliest transfers, and what fills its memory.

    Of a plan that does not fit it says by how much, where, and how much more memory would do.
    A plan of a network of the zoo or of a function may stand alone, without MODEL, and one for a
    preset without --cluster.
    """
    import msgspec

    from situate.cli.answer import fit_status, print_json, print_table
    from situate.cli.inputs import check_method, model_and_plan, read_planned
    from situate.cli.learning_options import LearningOptions
    from situate.cli.outputs import check_outputs, check_picture, draw_picture, write_schedule
    from situate.cli.search import Budget, interruptible
    from situate.cli.slicing import read_step, run_step, say_of_slices
    from situate.cli.terminal import note
    from situate.report.explain import explain as explained_by
    from situate.report.explanation_table import explanation_table

    check_method(method)
    model, plan = model_and_plan(model, plan)
    check_outputs([model, plan, cluster, costs], [picture, schedule])
    check_picture(picture)
    if plan is not None:
        _check_unsearched(context)
        problem, chosen = read_planned(model, plan, cluster, optimizer, dim, costs)
    else:
        step = read_step(
            model,
            cluster,
            [method],
            slices,
            slice_dim,
            slice_loss,
            batch_norm,
            sums,
            replicas,
            once,
            objective=objective,
            rules=rules,
            optimizer=optimizer,
            dim=dim,
            costs=costs,
            recompute=recompute,
            check=check,
        )
        budget = Budget(time_limit, evaluations, seed, threads)
        with interruptible() as interrupt:
            found = run_step(step, method, budget, LearningOptions())
        problem, chosen = found.result.problem, found.result.schedule
        say_of_slices(found.choice)
        if interrupt.came:
            note("interrupted: this is the best plan so far")
    explained = explained_by(problem, chosen)
    try:
        write_schedule(problem, chosen, schedule)
        draw_picture(problem, chosen, picture)
    finally:
        if as_json:
            print_json(_names(problem) | msgspec.to_builtins(explained))
        else:
            print_table(explanation_table(explained))
    return fit_status(problem, chosen)


def _check_unsearched(context: typer.Context) -> None:
    """Refuse options of a search where a plan is given, which was searched for by its own."""
    for name in SEARCHED:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = name.replace("_", "-")
            raise SituateError(f"--{option}: the plan is made already: leave out one of the two")


def _names(problem: Problem) -> dict[str, str]:
    """Names of the graph and cluster, the objective and the rules."""
    return {
        "graph": problem.graph.name,
        "cluster": problem.cluster.name,
        "objective": problem.objective,
        "rules": problem.rules.name,
    }
