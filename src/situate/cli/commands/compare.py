"""`situate compare`: methods side by side on one problem, a single device always among them."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli import completions
from situate.cli.options import (
    BatchNorm,
    Check,
    ChosenOnce,
    ChosenRecompute,
    ChosenSlices,
    ChosenSums,
    Clock,
    Cluster,
    ControllerCount,
    Costs,
    CurvesFile,
    Dim,
    Evaluations,
    Evaluator,
    GroupCount,
    Grouping,
    Json,
    Model,
    Noise,
    Objective,
    Optimizer,
    Out,
    Picture,
    Replicas,
    Rules,
    Samples,
    ScheduleFile,
    Seed,
    Settings,
    SliceDim,
    SliceLoss,
    Stalest,
    TensorBoard,
    Threads,
    TimeLimit,
    Timeout,
    Weights,
    Workers,
)


def compare(
    model: Model,
    cluster: Cluster = None,
    costs: Costs = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="Methods to compare. Default: all that apply, but for those that learn.",
            autocompletion=completions.one_after_another(completions.methods),
        ),
    ] = None,
    objective: Objective = "time",
    rules: Rules = None,
    time_limit: TimeLimit = None,
    evaluations: Evaluations = None,
    seed: Seed = 0,
    threads: Threads = None,
    samples: Samples = None,
    settings: Settings = None,
    weights: Weights = None,
    grouping: Grouping = None,
    groups: GroupCount = None,
    noise: Noise = None,
    evaluator: Evaluator = None,
    workers: Workers = None,
    controllers: ControllerCount = None,
    clock: Clock = None,
    stalest: Stalest = None,
    timeout: Timeout = None,
    study: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of studies, one a method, that record every measurement; the same "
            "command then goes on from them.",
        ),
    ] = None,
    optimizer: Optimizer = None,
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
    out: Out = None,
    picture: Picture = None,
    schedule: ScheduleFile = None,
    curves: CurvesFile = None,
    tensorboard: TensorBoard = None,
    as_json: Json = False,
) -> int:
    """Plan with several methods and show them side by side, a single device always among them.

    --time-limit and --evaluations hold for each method. With --samples, methods that learn and
    'random' measure so many placements, however long it takes. The options from --samples to
    --study, --curves and --tensorboard are for methods that learn; --out, --picture and --schedule
    take the best plan.
    """
    from situate.cli.answer import result_status, show_comparison
    from situate.cli.comparison import best_of, chosen_of, compared
    from situate.cli.curves import draw_curves
    from situate.cli.hardware import machine_for, measured
    from situate.cli.learning_options import LearningOptions
    from situate.cli.outputs import (
        check_folder,
        check_outputs,
        check_picture,
        check_tensorboard,
        write_outputs,
    )
    from situate.cli.search import Budget
    from situate.cli.slicing import problem_of, read_step, say_of_slices
    from situate.cli.terminal import BAD_INPUT

    chosen = chosen_of(methods)
    options = LearningOptions(
        samples,
        settings,
        grouping,
        groups,
        noise,
        study,
        curves,
        tensorboard,
        evaluator,
        workers,
        controllers,
        timeout,
        weights,
        clock,
        stalest,
    )
    options.check(chosen, objective)
    check_outputs([model, cluster, costs, weights], [out, picture, schedule, curves])
    check_picture(picture)
    check_picture(curves, "curves")
    check_tensorboard(tensorboard)
    check_folder(study)
    step = read_step(
        model,
        cluster,
        chosen,
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
    with machine_for(options, problem_of(step), model, optimizer) as machine:
        runs = compared(step, chosen, budget, options, machine, skip=methods is None)
        results = measured([run.result for run in runs], machine)
    best = best_of(results)
    choices = {run.result.method: run.choice for run in runs if run.choice}
    say_of_slices(choices.get(best.method))
    try:
        write_outputs(best, out, picture, schedule)
        draw_curves(runs, curves)
    finally:
        show_comparison(results, best, as_json, choices)
    return result_status(best) or (0 if all(run.complete for run in runs) else BAD_INPUT)
