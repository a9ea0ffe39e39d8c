"""`situate compare`: methods side by side on one problem, a single device always among them."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli import names
from situate.cli.config_file import with_config
from situate.cli.language.options import LanguageOptions, is_language
from situate.cli.learning_options import ComparisonLearningOptions
from situate.cli.option_groups import After, with_options
from situate.cli.options import Model
from situate.cli.search_options import ComparisonOutputs, ProblemOptions, SearchBudget
from situate.cli.step_options import StepOptions


@with_config
@with_options
def compare(
    call: typer.Context,
    model: Model,
    *,
    problem: ProblemOptions,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="Methods to compare. Default: all that apply, except for those that learn.",
            autocompletion=names.complete_list(names.methods),
        ),
        After("costs"),
    ] = None,
    budget: SearchBudget,
    learning: ComparisonLearningOptions,
    step: StepOptions,
    language: LanguageOptions,
    flags: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LINE",
            help="Of a language model: flags of llama.cpp to price in the same table, such as "
            '"-ngl 99 -ot exps=CPU". May be repeated.',
        ),
    ] = None,
    outputs: ComparisonOutputs,
) -> int:
    """Plan with several methods and show them side by side, a single device always among them.

    --time-limit and --evaluations hold for each method. With --samples, methods that learn and
    'random' measure that many placements, however long it takes. The options from --samples to
    --study, --curves and --tensorboard are for methods that learn; --out, --picture and --schedule
    take the best plan; --report shows the best two side by side, and all in a table. With --layout,
    layouts of a training run stand side by side.
    """
    from situate.cli.answer import result_status, show_comparison
    from situate.cli.comparison import best_result, method_names, run_methods
    from situate.cli.hardware import machine_for, with_measurements
    from situate.cli.language.commands import compare_language_model
    from situate.cli.language.training import compare_trainings
    from situate.cli.live.progress_file import begin_progress
    from situate.cli.outputs import draw_curves, write_outputs, write_report
    from situate.cli.step import print_slice_summary, read_step, whole_problem
    from situate.cli.terminal import BAD_INPUT
    from situate.report.view.plan_report import compared_reports

    if language.layout is not None:
        return compare_trainings(call, model, problem, language.layout, outputs)
    if is_language(model):
        return compare_language_model(call, model, problem, language, outputs, flags or ())
    language.refuse(flags or ())
    selection = method_names(methods)
    learning.check(selection, problem.objective)
    inputs = [model, problem.cluster, problem.costs, learning.weights]
    outputs.check(inputs, learning.curves, budget.progress)
    learning.check_files()
    begin_progress(budget.progress)
    cuts = read_step(model, selection, problem, step)
    with machine_for(learning, whole_problem(cuts), model, step.optimizer) as machine:
        runs = run_methods(cuts, selection, budget, learning, machine, skip=methods is None)
        results = with_measurements([run.result for run in runs], machine)
    best = best_result(results)
    choices = {run.result.method: run.choice for run in runs if run.choice}
    print_slice_summary(choices.get(best.method))
    try:
        write_outputs(best, outputs.out, outputs.picture, outputs.schedule)
        write_report(compared_reports(results), outputs.report)
        draw_curves([run.result for run in runs], [run.curve for run in runs], learning.curves)
    finally:
        show_comparison(results, best, outputs.as_json, choices)
    return result_status(best) or (0 if all(run.complete for run in runs) else BAD_INPUT)
