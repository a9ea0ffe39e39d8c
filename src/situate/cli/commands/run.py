"""`situate run`: a plan's step on the devices of this machine, beside its prediction."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli.options import Costs, Json, PlanCluster, PlanFile, PlannedOptimizer, Runnable, Seed

MAX_RELATIVE_DEVIATION = 0.25
"""Standard deviation over mean above which steps measure other programs."""


def run(
    model: Runnable = None,
    plan: PlanFile = None,
    cluster: PlanCluster = None,
    costs: Costs = None,
    steps: Annotated[
        int, typer.Option(min=2, max=10**6, help="Steps to run; the first is not counted.")
    ] = 11,
    seed: Seed = 0,
    optimizer: PlannedOptimizer = None,
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write one more step, op by op, beside the predicted one: a Perfetto trace.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a plan's step on the devices of this machine, and compare it with its prediction.

    The seed gives weights and inputs, and every step gets the same inputs. The model must be a
    network of the zoo or package.module:function.
    """
    from situate.cli.answer import print_json, print_table
    from situate.cli.load_plan import load_plan
    from situate.cli.outputs import check_outputs, check_trace
    from situate.cli.terminal import note, working
    from situate.report.measured_run import measured_run, run_figures, run_table
    from situate.runtime.measure import arguments, measure, timeline
    from situate.writers import perfetto

    check_outputs([model, plan, cluster, costs], [trace])
    check_trace(trace)
    loaded = load_plan(model, plan, cluster, costs, optimizer, seed)
    prepared = loaded.prepared
    problem, schedule = prepared.problem, prepared.schedule
    with loaded.default_step() as step, working("starting the devices") as show:
        steps_run = measure(
            step, loaded.inputs, steps, lambda k: show(f"running step {k} of {steps}")
        )
        show("measuring memory")
        peaks = step.memory(*arguments(loaded.inputs))
        if trace is not None:
            # Clocks around every op slow the step, so it is not one of those measured above.
            show("timing ops")
            step.timed(*arguments(loaded.inputs))
            start, end = timeline(step.records, problem.n)
    if steps_run.deviation > MAX_RELATIVE_DEVIATION * steps_run.mean:
        note(
            "warning: some steps took much longer than others: other programs ran; measure again "
            f"(the median is {steps_run.median * 1e3:.3g} ms)"
        )
    result = measured_run(problem, schedule, steps_run, prepared.placed.used, peaks, prepared.peak)
    try:
        if trace is not None:
            perfetto.write_beside(problem, schedule, start, end, trace)
            note(f"wrote {trace}")
    finally:
        if as_json:
            print_json(run_figures(result))
        else:
            print_table(run_table(result))
