"""`situate plan`: the best plan for a model on a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

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
    DryRun,
    Evaluations,
    Evaluator,
    GroupCount,
    Grouping,
    Json,
    Method,
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


def plan(
    model: Model,
    cluster: Cluster = None,
    costs: Costs = None,
    objective: Objective = "time",
    method: Method = "auto",
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
            metavar="FILE",
            help="Study that records every measurement; the same command then goes on from it.",
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
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Decide which device runs each op, and in which order.

    Ctrl-C ends the search and keeps the best plan so far. The options from --samples to --study,
    --curves and --tensorboard are for methods that learn.
    """
    from pathlib import Path

    from situate.cli.answer import result_status, show_forecast, show_result
    from situate.cli.curves import draw_curves
    from situate.cli.hardware import machine_for, measured
    from situate.cli.inputs import check_method
    from situate.cli.learning_options import LearningOptions
    from situate.cli.outputs import (
        check_outputs,
        check_picture,
        check_tensorboard,
        write_outputs,
    )
    from situate.cli.run_method import resumption
    from situate.cli.search import Budget, interruptible
    from situate.cli.slicing import problem_of, read_step, run_step, say_of_slices
    from situate.cli.terminal import BAD_INPUT, note
    from situate.report.slices.slicing import slicing_text

    check_method(method)
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
    options.check([method], objective)
    check_outputs([model, cluster, costs, weights], [out, picture, schedule, curves, study])
    check_picture(picture)
    check_picture(curves, "curves")
    check_tensorboard(tensorboard)
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
    budget = options.budget(method, [method], Budget(time_limit, evaluations, seed, threads))
    kept = Path(study) if study else None
    with machine_for(options, problem_of(step), model, optimizer) as machine:
        with interruptible() as interrupt:
            found = run_step(step, method, budget, options, kept, machine)
        (result,) = measured([found.result], machine)
    if interrupt.came:
        how = f"; {resumption(kept)}" if len(result.samples) else ""
        note(f"interrupted: this is the best plan so far{how}")
    say_of_slices(found.choice)
    if found.choice is None and (told := slicing_text(result)):
        note(told)
    try:
        write_outputs(result, out, picture, schedule)
        draw_curves([found], curves)
    finally:  # a full disk does not take the answer of a long search
        if dry_run:
            show_forecast(result, as_json)
        else:
            show_result(result, as_json, found.choice)
    return result_status(result) or (0 if found.complete else BAD_INPUT)
