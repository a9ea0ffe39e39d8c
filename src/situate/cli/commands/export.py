"""`situate export`: a plan in another tool's format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli import names
from situate.cli.language.options import Quant
from situate.cli.options import Costs, Dim, PlanFile, PlannedCluster, PlannedModel, PlannedOptimizer
from situate.errors import PlanError, SituateError

if TYPE_CHECKING:
    from situate.data.graph import Graph

TARGETS = (
    "perfetto",
    "accelerate",
    "dtensor",
    "torchtitan",
    "vllm",
    "llamacpp",
    "megatron",
    "deepspeed",
    "pipelining",
    "onnxruntime",
    "dot",
)

TRAINERS = ("accelerate", "torchtitan", "megatron", "deepspeed", "pipelining")
"""Targets that run a step in slices of its batch."""

INFERRING = ("vllm", "llamacpp")
"""Targets that run forward passes alone."""

DRAWINGS = ("perfetto", "dot")
"""Targets for people, which run nothing."""

CUTTING = ("dtensor", "accelerate", "torchtitan", "megatron", "deepspeed")
"""Targets that cut modules over the devices of a mesh."""

SCHEDULED = ("torchtitan", "pipelining")
"""Targets that read the order of slices from a second file."""


def export(
    to: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(TARGETS[:-1])} or {TARGETS[-1]}.",
            autocompletion=names.complete_words(*TARGETS),
        ),
    ],
    out: Annotated[str, typer.Option(metavar="FILE", help="The file to write.")],
    model: PlannedModel = None,
    plan: PlanFile = None,
    cluster: PlannedCluster = None,
    costs: Costs = None,
    optimizer: PlannedOptimizer = None,
    dim: Dim = None,
    quant: Quant = None,
) -> None:
    """Write a plan for another tool: a trace, a device map, the stages of a pipeline, a drawing.

    Plans of slices go to tools that train in slices; tools that read the order of slices from a
    file get it beside FILE, in .csv. Plans of parts (--cuts) go to dtensor, accelerate,
    torchtitan, megatron and deepspeed, as long as equal teams of devices run them.

    A plan of a network of the zoo or of a function needs no MODEL, and one for a preset no
    --cluster.
    """
    import importlib

    from situate.cli.inputs import model_and_plan, read_planned
    from situate.cli.language.commands import export_language_plan
    from situate.cli.names import check_name
    from situate.cli.outputs import check_outputs
    from situate.cli.step_options import parse_dims
    from situate.cli.terminal import note, working
    from situate.data.capture_options import CaptureOptions
    from situate.language.planning.plan_file import is_language_plan
    from situate.model import check_model, is_file
    from situate.report.parts import collectives_text, parts_text
    from situate.report.slices.parallelism import parallelism_text
    from situate.report.slices.stages import NotAPipeline
    from situate.report.tables import over_text
    from situate.report.units import time_text
    from situate.writers.onnxruntime import SeveralOfAKind

    if model is not None and plan is not None and is_language_plan(plan):
        export_language_plan(to, out, model, plan, cluster, quant)
        return
    check_name(to, TARGETS, "target")
    model, plan = model_and_plan(model, plan)
    if plan is None:
        check_model(model)
        raise SituateError(f"give the plan too: situate export {model} PLAN --to {to} --out {out}")
    check_outputs([model, plan, cluster, costs], [out])
    capture = CaptureOptions(optimizer, parse_dims(dim))
    problem, schedule = read_planned(model, plan, cluster, costs, capture)
    if problem.graph.recompute and to not in DRAWINGS:
        raise PlanError(
            f"the plan runs {problem.graph.recompute[0]} again before its backward pass, which "
            f"{to} cannot do: export it to {' or '.join(DRAWINGS)}, or plan without --recompute"
        )
    if problem.graph.cuts is not None and to not in (*CUTTING, *DRAWINGS):
        raise PlanError(
            f"the plan cuts ops ({problem.graph.cuts}), which {to} cannot say: export it to "
            f"{', '.join(CUTTING)}, {' or '.join(DRAWINGS)}, run it by situate run, or plan "
            "without --cuts"
        )
    # Checked again with the second file, which the plan's slices decide.
    files = [out, *_beside(problem.graph, to, out)]
    check_outputs([model, plan, cluster, costs], files)
    source = {"model": model} if to == "onnxruntime" else {}
    try:
        # A target has the name of its writer's module, see `TARGETS`.
        importlib.import_module(f"situate.writers.{to}").write(problem, schedule, out, **source)
    except (NotAPipeline, SeveralOfAKind) as error:
        from situate.cli.remedy import remedy

        with working("looking for a remedy"):
            raise PlanError(f"{error}: {remedy(problem, schedule, error)}") from None
    note(f"wrote {' and '.join(files)}")
    if kind := parts_text(problem, schedule) or parallelism_text(problem, schedule):
        note(f"the plan is {kind}")
    if to in CUTTING and (line := collectives_text(problem, schedule)):
        predicted = time_text(float(schedule.makespan), problem.graph.unit)
        note(f"the plan's step of {predicted} has transfers; {line}")
    if to in INFERRING and any(op.phase in ("backward", "update") for op in problem.graph.ops):
        name = "MODEL" if is_file(model) else model
        note(f"warning: the plan is of a training step, and {to} infers: plan {name}:inference")
    if to not in DRAWINGS and (rule := _recipe_of(problem.graph)):
        note(
            f"warning: the plan trains by {rule}, which the file does not say: set the optimizer "
            f"and the types of weights, gradients and states in {to}"
        )
    if not schedule.feasible(problem):
        note(f"warning: the plan does not fit: {over_text(problem, schedule).removeprefix('no: ')}")


def _recipe_of(graph: Graph) -> str:
    """The update rule of a step under a recipe; empty without one."""
    from situate.data.update_rule import update_rule

    if not graph.optimizer or update_rule(graph.optimizer).recipe is None:
        return ""
    return graph.optimizer


def _beside(graph: Graph, to: str, out: str) -> list[str]:
    """The second file of a plan of slices, beside `out`.

    Raises:
        PlanError: the target takes no op of a slice.
    """
    from situate.writers.slices.order import csv_path

    slices = graph.slices
    if slices is None or graph.cuts is not None:
        return []
    if to not in (*TRAINERS, *DRAWINGS):
        raise PlanError(
            f"the plan is of slices {slices}, and {to} takes no op of a slice: export it to "
            f"{', '.join(TRAINERS)}, {' or '.join(DRAWINGS)}, or plan the whole batch"
        )
    return [str(csv_path(out))] if to in SCHEDULED else []
