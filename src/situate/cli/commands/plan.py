"""`situate plan`: the best plan for a model on a cluster."""

from __future__ import annotations

import typer

from situate.cli.config_file import with_config
from situate.cli.language.options import LanguageOptions, is_language
from situate.cli.learning_options import LearningOptions
from situate.cli.option_groups import with_options
from situate.cli.options import Model
from situate.cli.search_options import Method, OutputOptions, ProblemOptions, SearchBudget
from situate.cli.step_options import StepOptions


@with_config
@with_options
def plan(
    call: typer.Context,
    model: Model,
    *,
    problem: ProblemOptions,
    method: Method = "auto",
    budget: SearchBudget,
    learning: LearningOptions,
    step: StepOptions,
    language: LanguageOptions,
    outputs: OutputOptions,
) -> int:
    """Decide which device runs each op, and in which order.

    A problem of the contest IOPDDL, one strategy for each op, takes the options --time-limit,
    --evaluations (rounds), --seed, --threads, --out and --json. A problem of Piper, stages of
    layers with their degrees of parallelism, takes --time-limit, --out and --json.

    A language model (GGUF, config.json) is planned for a request: its options are those from
    --quant to --draft, and its objectives request, decode, prefill and context. With --layout, a
    training run of the model is planned instead.

    Ctrl-C ends the search and keeps the best plan so far. The options from --samples to --study,
    --curves and --tensorboard are for methods that learn.
    """
    from pathlib import Path

    from situate.cli.answer import result_status, show_forecast, show_result
    from situate.cli.hardware import machine_for, with_measurements
    from situate.cli.language.commands import plan_language_model
    from situate.cli.language.training import plan_training
    from situate.cli.live.progress_file import begin_progress
    from situate.cli.names import check_method
    from situate.cli.outputs import draw_curves, write_outputs, write_report
    from situate.cli.search import interruptible, resumption
    from situate.cli.sharding import plan_sharding, plan_stages
    from situate.cli.step import print_slice_summary, read_step, run_step, whole_problem
    from situate.cli.terminal import BAD_INPUT, note
    from situate.report.slices.choice import slicing_text
    from situate.report.view.plan_report import PlanReport
    from situate.sharding import is_sharding_problem, is_stage_problem

    if language.layout is not None:
        return plan_training(call, model, problem, language.layout, budget, outputs)
    if is_language(model):
        return plan_language_model(call, model, problem, language, outputs)
    if is_sharding_problem(model):
        return plan_sharding(call, model, budget, outputs)
    if is_stage_problem(model):
        return plan_stages(call, model, budget, outputs)
    language.refuse()
    check_method(method)
    learning.check([method], problem.objective)
    inputs = [model, problem.cluster, problem.costs, learning.weights]
    outputs.check(inputs, learning.curves, learning.study, budget.progress)
    learning.check_files()
    begin_progress(budget.progress)
    cuts = read_step(model, [method], problem, step)
    budget = learning.budget(method, [method], budget)
    study = Path(learning.study) if learning.study else None
    with machine_for(learning, whole_problem(cuts), model, step.optimizer) as machine:
        with interruptible() as interrupt:
            run = run_step(cuts, method, budget, learning, study, machine)
        (result,) = with_measurements([run.result], machine)
    if interrupt.came:
        remedy = f"; {resumption(study)}" if len(result.samples) else ""
        note(f"interrupted: this is the best plan so far{remedy}")
    print_slice_summary(run.choice)
    if run.choice is None and (text := slicing_text(result)):
        note(text)
    try:
        write_outputs(result, outputs.out, outputs.picture, outputs.schedule)
        write_report([PlanReport.of_result(result)], outputs.report)
        draw_curves([run.result], [run.curve], learning.curves)
    finally:  # a full disk must not lose the answer of a long search
        if outputs.dry_run:
            show_forecast(result, outputs.as_json)
        else:
            show_result(result, outputs.as_json, run.choice)
    return result_status(result) or (0 if run.complete else BAD_INPUT)
