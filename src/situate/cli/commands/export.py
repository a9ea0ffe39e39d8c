"""`situate export`: a plan in another tool's format."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli.completions import of
from situate.cli.options import Cluster, Costs, Dim, Model, Optimizer, PlanFile
from situate.errors import PlanError, SituateError

TARGETS = (
    "perfetto",
    "accelerate",
    "torchtitan",
    "vllm",
    "llamacpp",
    "megatron",
    "onnxruntime",
    "dot",
)

DRAWINGS = ("perfetto", "dot")
"""Targets to look at, which run nothing."""


def export(
    model: Model,
    to: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(TARGETS[:-1])} or {TARGETS[-1]}.",
            autocompletion=of(lambda: TARGETS),
        ),
    ],
    out: Annotated[str, typer.Option(metavar="FILE", help="The file to write.")],
    plan: PlanFile = None,
    cluster: Cluster = None,
    costs: Costs = None,
    optimizer: Optimizer = None,
    dim: Dim = None,
) -> None:
    """Write a plan for another tool: a trace, a device map, the stages of a pipeline, a drawing.

    A plan of a network of the zoo or of a function may stand alone, without MODEL, and one for a
    preset without --cluster.
    """
    import importlib

    from situate.cli.inputs import check_name, model_and_plan, read_planned
    from situate.cli.outputs import check_outputs
    from situate.cli.terminal import note, working
    from situate.model import check_model
    from situate.report.tables import over_text
    from situate.writers.onnxruntime import SeveralOfAKind
    from situate.writers.stages import NotAPipeline

    check_name(to, TARGETS, "target")
    model, plan = model_and_plan(model, plan)
    if plan is None:
        check_model(model)
        raise SituateError(f"give the plan too: situate export {model} PLAN --to {to} --out {out}")
    check_outputs([model, plan, cluster, costs], [out])
    problem, schedule = read_planned(model, plan, cluster, optimizer, dim, costs)
    if problem.graph.slices is not None and to not in DRAWINGS:
        raise PlanError(
            f"the plan is of slices {problem.graph.slices}, and {to} takes no op of a slice: "
            f"export it to {' or '.join(DRAWINGS)}, or plan the whole batch"
        )
    if problem.graph.recompute and to not in DRAWINGS:
        raise PlanError(
            f"the plan runs {problem.graph.recompute[0]} again before its backward pass, and {to} "
            f"takes no op that does: export it to {' or '.join(DRAWINGS)}, or plan without "
            "--recompute"
        )
    source = {"model": model} if to == "onnxruntime" else {}
    try:
        importlib.import_module(f"situate.writers.{to}").write(problem, schedule, out, **source)
    except (NotAPipeline, SeveralOfAKind) as error:
        from situate.cli.remedy import remedy

        with working("trying what helps"):
            raise PlanError(f"{error}: {remedy(problem, error)}") from None
    note(f"wrote {out}")
    if not schedule.feasible(problem):
        note(f"warning: the plan does not fit: {over_text(problem, schedule).removeprefix('no: ')}")
