"""Problems from what the user typed, with what the user should know on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from situate import zoo
from situate.cli.terminal import note, working
from situate.data.cluster import OWN_MACHINE, Cluster
from situate.data.costs import Costs
from situate.data.graph import Graph
from situate.data.problem import OBJECTIVES, Objective, Problem
from situate.data.recompute import is_auto, parse_modules
from situate.data.rules import find_rules
from situate.data.slices import AUTO, Slices, Sums, parse
from situate.errors import PlanError, SituateError, nearest
from situate.model import check_model, find_model, is_file
from situate.results.plan import Plan
from situate.schedule.schedule import Schedule

if TYPE_CHECKING:
    from situate.torch_capture import Captures


def read_model(
    model: str,
    optimizer: str | None = None,
    dim: Sequence[str] | None = None,
    fresh: bool = False,
    signed: bool = False,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    captures: Captures | None = None,
) -> Graph:
    """The graph, after its reader's warnings; `dim` as typed, such as `batch=8`, and the others as
    `find_model` takes them.

    What a user's function prints goes to stderr: stdout is for the answer.
    """
    graph = _found(model, optimizer, dim, fresh, signed, slices, recompute, captures)
    for warning in graph.warnings:
        note(f"warning: {warning}")
    return graph


def _found(
    model: str,
    optimizer: str | None,
    dim: Sequence[str] | None,
    fresh: bool = False,
    signed: bool = False,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    captures: Captures | None = None,
) -> Graph:
    dims = _dims(dim or ())
    with working(f"reading {model}"), redirect_stdout(sys.stderr):
        return find_model(model, optimizer, dims, fresh, signed, slices, recompute, captures)


def _dims(texts: Sequence[str]) -> dict[str, int]:
    dims: dict[str, int] = {}
    for name, size in map(_dim, texts):
        if dims.setdefault(name, size) != size:
            raise SituateError(f"--dim {name}: given as {dims[name]} and as {size}: give one size")
    return dims


def _dim(text: str) -> tuple[str, int]:
    name, _, size = text.rpartition("=")
    if not name or not (size.isascii() and size.isdecimal()) or not 0 < int(size[:20]) < 2**53:
        raise SituateError(f"--dim {text!r}: must be NAME=SIZE with a positive size")
    return name, int(size)


def slices_of(
    slices: str | None,
    dims: Sequence[str] | None,
    loss: str | None,
    batch_norm: str | None,
    sums: str | None,
    replicas: str | None,
    once: Sequence[str] | None,
) -> Slices | None:
    """The slices that the options --slices, --slice-dim, --slice-loss, --batch-norm, --sums,
    --replicas and --once stand for."""
    if slices is not None:
        return parse(slices, dims, loss, replicas, once, batch_norm, sums)
    given = {
        "slice-dim": dims,
        "slice-loss": loss,
        "batch-norm": batch_norm,
        "sums": sums,
        "replicas": replicas,
        "once": once,
    }
    for name, value in given.items():
        if value:
            raise SituateError(f"--{name} says how the batch is cut: give --slices too")
    return None


def told_slices(
    slices: str | None,
    dims: Sequence[str] | None,
    loss: str | None,
    batch_norm: str | None,
    sums: str | None,
    replicas: str | None,
    once: Sequence[str] | None,
) -> Slices | None:
    """As `slices_of`, of a command that leaves nothing of them open."""
    may_be_open = (
        ("slices", slices == AUTO, "give a number, such as 4"),
        ("sums", sums == AUTO, "give chain or tree"),
        ("once", AUTO in (once or ()), "name parameters"),
    )
    for name, is_open, remedy in may_be_open:
        if is_open:
            raise SituateError(
                f"--{name} auto: 'plan', 'compare' and 'explain' choose for a cluster: {remedy}"
            )
    return slices_of(slices, dims, loss, batch_norm, sums, replicas, once)


def recompute_of(modules: str | None) -> tuple[str, ...]:
    """The names of modules that the option --recompute gives."""
    return () if modules is None else parse_modules(modules)


def read_problem(
    model: str,
    cluster: str | None,
    *,
    objective: str = "time",
    rules: str | None = None,
    optimizer: str | None = None,
    dim: Sequence[str] | None = None,
    costs: str | None = None,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    captures: Captures | None = None,
    check: bool = True,
) -> Problem:
    """The problem; what is cheap to check is checked before the model is read."""
    goal = find_objective(objective)
    chosen = None if cluster is None else Cluster.find(cluster)
    measured = None if costs is None else Costs.read(costs)
    if rules is not None:
        find_rules(rules)
    check_model(model)
    if chosen is None and not is_file(model):
        raise _no_machine(model, f"{_presets()} or a TOML file")
    signed, asked = measured is not None, slices
    if slices is not None:
        slices = _closed(slices)

    def problem_of(graph: Graph) -> Problem:
        machine = chosen or _own_machine(graph)
        return Problem(graph, machine, goal, find_rules(rules or graph.rules), measured)

    if slices is not None and captures is None and not (check or is_file(model)):
        from situate.torch_capture import Captures

        captures = Captures(check=False)
    if is_auto(recompute) and not (dim or is_file(model)):
        from situate.cli.recompute import chosen_problem

        problem = chosen_problem(model, optimizer, slices, problem_of)
    else:
        graph = read_model(model, optimizer, dim, False, signed, slices, recompute, captures)
        problem = problem_of(graph)

    def captured(cut: Slices | None) -> Problem:
        """Captured again, as a plan's step is when it runs, so that both are the same graph."""
        again = problem.graph.recompute
        graph = _found(model, optimizer, dim, signed=signed, slices=cut, recompute=again)
        return replace(problem, graph=graph)

    if asked is not None and asked.sums == AUTO:
        problem = _with_better_sums(problem, captured)
    if asked is not None and asked.once == (AUTO,):
        problem = captured(_with_once(problem))
    if problem.graph.rules != (rules or "situate"):
        _say_rules(problem.graph, rules)
    return problem


def _closed(slices: Slices) -> Slices:
    """The slices with which a choice of what is open in them begins."""
    once = () if slices.once == (AUTO,) else slices.once
    sums: Sums = "chain" if slices.sums == AUTO else slices.sums
    return msgspec.structs.replace(slices, once=once, sums=sums)


def _with_better_sums(chain: Problem, captured: Callable[[Slices | None], Problem]) -> Problem:
    """The step whose gradients are added up in a chain, or in a tree where that is better."""
    from situate.solvers.sum_choice import better_sums

    cut = chain.graph.slices
    tree = captured(cut and msgspec.structs.replace(cut, sums="tree"))
    with working("choosing the order of sums"):
        order = better_sums(chain, tree)
    note(f"sums: gradients are added up in a {order}")
    return tree if order == "tree" else chain


def _with_once(problem: Problem) -> Slices | None:
    """The slices of a step of replicas, with the parameters that are better there once."""
    from situate.data.replicas import replicated
    from situate.report.units import size_text
    from situate.solvers.replica_choice import parameters_once

    nbytes = replicated(problem.graph)
    with working("choosing the parameters that are there once"):
        once = parameters_once(problem)
    alone = size_text(sum(nbytes[name] for name in once))
    note(
        f"replicas: {len(once):,} of {len(nbytes):,} parameters are there once, {alone} of "
        f"{size_text(sum(nbytes.values()))} with their state"
    )
    cut = problem.graph.slices
    return cut and msgspec.structs.replace(cut, once=(*cut.once, *once))


def check_method(name: str) -> None:
    """Raise for a method that does not exist."""
    from situate.solvers import METHODS

    check_name(name, METHODS, "method")


def check_name(name: str, known: Collection[str], what: str) -> None:
    """Raise for a name that is not among the known ones."""
    if name not in known:
        raise SituateError(f"unknown {what} {name!r}{nearest(name, known)}")


def find_objective(name: str) -> Objective:
    """The objective of that name; raises for others."""
    check_name(name, OBJECTIVES, "objective")
    return next(objective for objective in OBJECTIVES if objective == name)


def _own_machine(graph: Graph) -> Cluster:
    """The devices that the graph's own file brings."""
    if graph.machine:
        return Cluster.of_machine(OWN_MACHINE, graph.machine)
    fitting = f"{_presets()}, a TOML file or identical:N" if graph.unit else "identical:N"
    raise _no_machine(f"graph {graph.name!r}", fitting)


def _no_machine(what: str, fitting: str) -> SituateError:
    return SituateError(f"{what} brings no machine of its own: give --cluster {fitting}")


def _presets() -> str:
    return f"a preset ({', '.join(Cluster.presets())})"


def _say_rules(graph: Graph, rules: str | None) -> None:
    if rules is None:
        note(f"rules: {graph.rules}, those of the {graph.source} format; --rules changes them")
    else:
        note(f"rules: {rules}, not those of the {graph.source} format ({graph.rules})")


def read_planned(
    model: str,
    plan: str,
    cluster: str | None,
    optimizer: str | None = None,
    dim: Sequence[str] | None = None,
    costs: str | None = None,
) -> tuple[Problem, Schedule]:
    """A plan's problem, and the schedule that the plan stands for on it.

    Without `cluster` it is the preset, or the identical devices, that the plan names, else the
    machine of the model's own file; without `optimizer` the plan's own, unless the model is a file,
    which holds its update. So it is with the plan's slices and what it
    recomputes.
    """
    read = Plan.read(plan)
    rule = None if is_file(model) else read.update_rule
    slices = None if is_file(model) else read.cut
    recompute = () if is_file(model) else read.again
    read.check_costs(None if costs is None else Costs.read(costs))
    named = cluster or read.named_cluster
    if named is None and read.cluster != OWN_MACHINE:
        raise cluster_missing(read)
    problem = read_problem(
        model,
        named,
        objective=read.objective,
        rules=read.rules,
        optimizer=optimizer or (str(rule) if rule else None),
        dim=dim,
        costs=costs,
        slices=slices,
        recompute=recompute,
    )
    return problem, read.schedule(problem)


def model_and_plan(model: str | None, plan: str | None) -> tuple[str, str | None]:
    """Both files; a plan given alone stands for the model too, if that needs no file."""
    if model is None:
        raise SituateError("Missing argument: give MODEL, PLAN or both")
    if plan is not None or not os.path.isfile(model):
        return model, plan
    try:
        graph = Plan.read(model).graph
    except PlanError:
        return model, None
    if graph.partition(":")[0] not in zoo.names() and ":" not in graph:
        raise SituateError(f"{model} is a plan: give its model before it: MODEL {model}")
    return graph, model


def cluster_missing(plan: Plan) -> PlanError:
    """The error for a plan whose cluster is needed and not found by its name alone."""
    return PlanError(
        f"the plan was made for cluster {plan.cluster!r}, which is a file: give it with --cluster "
        "FILE"
    )
