"""Degrees of parallelism of a plan of parts, for tools that cut all layers alike."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.errors import PlanError
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.writers.cuts.pipelines import pipeline_of_teams
from situate.writers.cuts.teams import RUNS, Teams, check_parts, parameter_name, teams
from situate.writers.layers import split_layer

TENSOR = ("heads", "features", "vocabulary")
"""Kinds of classes that tensor parallelism cuts."""

GROUPED = ("aten._grouped_mm", "transformers.grouped_mm_fallback")
"""Kinds of ops that multiply the rows of each expert by its own weight."""

PRODUCTS = (
    *("aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm", "aten.linear", "aten.mv"),
    *GROUPED,
)
"""Kinds of ops that read the weights of a layer's products."""

ROUTERS = ("gate", "router")
"""Names of the products that choose experts, which every tool keeps whole."""


@dataclass(frozen=True)
class Degrees:
    """Degrees of parallelism; 1 for kinds that the plan does not have.

    Attributes:
        teams: of devices.
        tensor: parts of heads, features and vocabulary.
        context: parts of the sequence, where no weight but an expert's is cut.
        expert: parts of experts.
        has_sequence: true if norms run on parts of the sequence, beside tensor parallelism.
        kinds: of the classes that are cut.
    """

    teams: Teams
    tensor: int
    context: int
    expert: int
    has_sequence: bool
    kinds: frozenset[str]


def degrees(problem: Problem, schedule: Schedule, tool: str, *allowed: str) -> Degrees:
    """The degrees of a plan; warns about ops and weights that the plan has elsewhere.

    Args:
        tool: its name, in errors and warnings.
        allowed: the fields of `Degrees` that the tool has, beside `tensor`; `pipeline` if teams
            may be its stages.

    Raises:
        PlanError: the plan cuts a class that the tool does not cut, or cuts layers in several
            ways; or no mesh can express it, see `teams` and
            `pipeline_of_teams`.
    """
    check_parts(problem)
    graph = problem.graph
    assert graph.cuts is not None
    _check_classes(graph, tool)
    mesh = None
    if "pipeline" in allowed:
        mesh = pipeline_of_teams(problem, schedule, tool)
    mesh = mesh or teams(problem, schedule, tool)
    kinds = frozenset(parameter.kind for parameter in graph.cut_parameters)
    is_sequence = any(cut.name == "sequence" for cut in graph.cuts.cuts)
    tensor = mesh.parts if kinds & {*TENSOR} else 1
    context = mesh.parts if is_sequence and tensor == 1 else 1
    expert = mesh.parts if "experts" in kinds else 1
    for name, degree in (("context", context), ("expert", expert)):
        if degree > 1 and name not in allowed:
            what = "the sequence alone" if name == "context" else "experts"
            raise PlanError(f"the plan cuts {what}, which {tool} does not: {RUNS}")
    if expert > 1 and tensor == context == 1:
        raise PlanError(
            f"the plan cuts experts alone, and {tool} spreads them over devices that share other "
            f"work: plan with --cuts heads={expert} and features={expert} or sequence={expert} too"
        )
    result = Degrees(mesh, tensor, context, expert, is_sequence and tensor > 1, kinds)
    if tensor > 1:
        _check_layers(graph, tool)
    return result


def _check_classes(graph: Graph, tool: str) -> None:
    """
    Raises:
        PlanError: the plan cuts a class of another kind, or the batch.
    """
    assert graph.cuts is not None
    for parameter in graph.cut_parameters:
        if parameter.kind not in (*TENSOR, "experts"):
            raise PlanError(
                f"the plan cuts {_text(parameter.name)} along its {parameter.kind}, and {tool} "
                f"cuts heads, features, vocabulary and experts: {RUNS}"
            )
    if any(cut.name == "batch" for cut in graph.cuts.cuts):
        raise PlanError(
            f"the plan cuts the batch of single ops, and {tool} goes by slices of it: plan with "
            f"--slices in place of --cuts batch; {RUNS}"
        )


def _check_layers(graph: Graph, tool: str) -> None:
    """Warn of products beside the layers that the tool cuts and the plan does not.

    Raises:
        PlanError: a product of a layer is whole, or is cut otherwise in another layer.
    """
    dims: dict[tuple[str, str], dict[str, int | None]] = {}
    cut = {parameter.name: parameter.dim for parameter in graph.cut_parameters}
    for op in _weights(graph):
        name = parameter_name(op)
        where = split_layer(name)
        if where is None:
            if op.part is None:
                _warn_of_whole(name, tool)
            continue
        path, number, rest = where
        dims.setdefault((path, rest), {})[f"{path}.{number}{rest}"] = cut.get(name)
        if name not in cut and not any(part in ROUTERS for part in rest.split(".")):
            raise PlanError(
                f"the plan leaves {_text(name)} whole, and {tool} cuts every product of a layer: "
                f"plan with --cuts for its kind too, such as heads or features; {RUNS}"
            )
    for own in dims.values():
        (first, dim), *others = own.items()
        for name, other in others:
            if other != dim:
                raise PlanError(
                    f"the plan cuts {_text(first)} and {_text(name)} in two ways, and {tool} cuts "
                    f"all layers alike: {RUNS}"
                )


def _weights(graph: Graph) -> Iterator[Op]:
    """Parameters, or parts of them, that products of the forward pass read."""
    visited = set()
    for tensor in graph.tensors:
        op = graph.ops[tensor.producer]
        if op.kind == "parameter" and op.name not in visited and _is_weight(op):
            readers = (graph.ops[k] for k in tensor.consumers)
            if any(reader.kind in PRODUCTS or reader.kind == "aten.clone" for reader in readers):
                visited.add(op.name)
                yield op


def _is_weight(op: Op) -> bool:
    return not re.search(r"(^|\.)bias$", op.name)


def _warn_of_whole(name: str, tool: str) -> None:
    warnings.warn(f"{tool} also cuts {_text(name)}, which the plan has whole", stacklevel=5)


def warn_of_norms(plan: Degrees, tool: str) -> None:
    """Warn that a tool runs norms whole on every device, where the plan has parts."""
    if plan.has_sequence:
        warnings.warn(
            f"the plan runs norms on parts of the sequence, and {tool} runs them whole on every "
            "device",
            stacklevel=3,
        )


def warn_of_copies(tool: str) -> None:
    """Warn that a tool holds weights in each team, where the plan spreads them over the teams."""
    warnings.warn(
        f"the plan holds each weight in one team, and {tool} has a copy in each", stacklevel=3
    )


def _text(name: str) -> str:
    return repr(printable(name, 60))
