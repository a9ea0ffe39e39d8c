"""Problems and plans from the command line, with notes and warnings on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from situate import zoo
from situate.cli.language.clusters import find_cluster
from situate.cli.names import find_objective
from situate.cli.search_options import ProblemOptions
from situate.cli.terminal import note, working
from situate.data.capture_options import CaptureOptions
from situate.data.cluster import OWN_MACHINE, Cluster
from situate.data.costs import Costs
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.recompute import is_auto, recomputed_modules
from situate.data.replicas import replicated
from situate.data.rules import find_rules
from situate.data.slices import AUTO, Slices, Sums
from situate.errors import PlanError, SituateError
from situate.model import check_model, is_file, load_graph, trace_model
from situate.report.units import size_text, time_text
from situate.results.plan import Plan
from situate.schedule.schedule import Schedule

if TYPE_CHECKING:
    from situate.solvers.cut_choice.finals import Rival
    from situate.torch_capture import Captures


def read_model(model: str, options: CaptureOptions, captures: Captures | None = None) -> Graph:
    """The graph of a model, after warnings about it. Arguments are those of `load_graph`."""
    graph = _load(model, options, captures)
    for warning in graph.warnings:
        note(f"warning: {warning}")
    return graph


def _load(model: str, options: CaptureOptions, captures: Captures | None = None) -> Graph:
    # A user's function may print; stdout is for the answer.
    with working(f"reading {model}"), redirect_stdout(sys.stderr):
        return load_graph(model, options, captures)


def read_problem(
    model: str,
    options: ProblemOptions,
    capture: CaptureOptions,
    captures: Captures | None = None,
) -> Problem:
    """The problem of a model, after planning has made all choices that its options leave open.

    Cheap checks come before the model is read.

    Args:
        model: as `load_graph` takes it.
        options: cluster, costs, objective and rules.
        capture: of the step; `auto` in it stands for choices.
        captures: earlier captures of the same model.

    Raises:
        SituateError: an input does not exist, or they do not fit together.
    """
    goal = find_objective(options.objective)
    cluster = None if options.cluster is None else find_cluster(options.cluster)
    costs = None if options.costs is None else Costs.read(options.costs)
    check_model(model)
    if cluster is None and not is_file(model):
        raise _no_machine(model, f"{_presets()} or a TOML file")
    slices, capture = capture.slices, replace(capture, signed=costs is not None)

    def problem_of(graph: Graph) -> Problem:
        rules = find_rules(options.rules or graph.rules)
        return Problem(graph, cluster or _own_machine(graph), goal, rules, costs)

    # Choices are made on a step that is captured with their defaults, then captured again.
    first = replace(capture, slices=_closed(slices))
    if is_auto(capture.recompute) and not (capture.dims or is_file(model)):
        problem = _choose_recompute(model, first, problem_of)
    elif capture.cuts is not None and capture.cuts.is_auto:
        problem = _choose_cuts(model, first, problem_of)
        capture = replace(capture, cuts=problem.graph.cuts, slices=problem.graph.slices)
    else:
        problem = problem_of(read_model(model, first, captures))

    def recaptured(cut: Slices | None) -> Problem:
        """The problem in other slices, captured as for its plan, so that both graphs agree."""
        again = replace(capture, slices=cut, recompute=problem.graph.recompute, check_slices=True)
        return replace(problem, graph=_load(model, again))

    if slices is not None and slices.sums == AUTO:
        problem = _choose_sums(problem, recaptured)
    if slices is not None and slices.once == (AUTO,):
        problem = recaptured(_choose_once(problem))
    if problem.graph.rules != (options.rules or "situate"):
        _note_rules(problem.graph, options.rules)
    return problem


def _closed(slices: Slices | None) -> Slices | None:
    """The slices of the first capture, with a default in place of every choice."""
    if slices is None:
        return None
    once = () if slices.once == (AUTO,) else slices.once
    sums: Sums = "chain" if slices.sums == AUTO else slices.sums
    return msgspec.structs.replace(slices, once=once, sums=sums)


def _choose_recompute(
    model: str, capture: CaptureOptions, problem_of: Callable[[Graph], Problem]
) -> Problem:
    """The problem of a step with as many modules that run again as memory needs."""
    from situate.solvers.step_choices import with_recompute

    with working(f"reading {model}"), redirect_stdout(sys.stderr):
        step = trace_model(model, capture.optimizer, capture.slices)
    with working("choosing modules that run again"):
        problem = with_recompute(lambda modules: problem_of(step.graph(modules, capture.cuts)))
    for warning in problem.graph.warnings:
        note(f"warning: {warning}")
    note(_recompute_note(problem))
    return problem


def _choose_cuts(
    model: str, capture: CaptureOptions, problem_of: Callable[[Graph], Problem]
) -> Problem:
    """The problem of a step with the cuts by which it is planned best."""
    from situate.solvers.cut_choice import CutStep, choose_cuts

    with working(f"reading {model}"), redirect_stdout(sys.stderr):
        step = trace_model(model, capture.optimizer, capture.slices, "cuts")
    with working("choosing cuts of ops"):
        choice = choose_cuts(CutStep.of(step, problem_of, capture.recompute))
    problem = choice.problem
    for warning in problem.graph.warnings:
        note(f"warning: {warning}")
    cuts = problem.graph.cuts
    if choice.slices:
        note(f"slices: {problem.graph.slices}, because a step without would take longer")
    note(f"cuts: {cuts or 'none, because no cut would make the step shorter'}")
    if choice.rival is not None:
        note(_rival_note(choice.rival))
    if choice.least:
        which = "any cut of these slices" if choice.slices else "any cut"
        note(f"a step takes {time_text(choice.least, 's')} at least in {which}")
    return problem


def _rival_note(rival: Rival) -> str:
    options = " ".join(f"--cuts {cut}" for cut in rival.cuts.cuts)
    return f"with collectives, the step takes {rival.gain:.1%} less in other cuts: give {options}"


def _recompute_note(problem: Problem) -> str:
    modules = recomputed_modules(problem.graph)
    if not modules:
        return "recompute: no module runs again, because none would help"
    names = ", ".join(entry.module for entry in modules)
    freed = size_text(sum(entry.freed for entry in modules))
    return f"recompute: {names} run again, which frees {freed} until the backward pass"


def _choose_sums(chain: Problem, recaptured: Callable[[Slices | None], Problem]) -> Problem:
    """The better of two steps, which add up gradients in a chain or in a tree.

    Args:
        chain: the step with a chain.
        recaptured: captures the step in other slices.
    """
    from situate.solvers.step_choices import better_sums

    cut = chain.graph.slices
    tree = recaptured(cut and msgspec.structs.replace(cut, sums="tree"))
    with working("choosing the order of sums"):
        order = better_sums(chain, tree)
    note(f"sums: gradients are added up in a {order}")
    return tree if order == "tree" else chain


def _choose_once(problem: Problem) -> Slices | None:
    """The slices of a step of replicas, with the parameters that should have a single copy."""
    from situate.solvers.step_choices import parameters_once

    sizes = replicated(problem.graph)
    with working("choosing parameters with a single copy"):
        once = parameters_once(problem)
    single = size_text(sum(sizes[name] for name in once))
    note(
        f"replicas: {len(once):,} of {len(sizes):,} parameters have a single copy, {single} of "
        f"{size_text(sum(sizes.values()))} with their state"
    )
    cut = problem.graph.slices
    return cut and msgspec.structs.replace(cut, once=(*cut.once, *once))


def _own_machine(graph: Graph) -> Cluster:
    """The devices that the model's own file describes."""
    if graph.machine:
        return Cluster.of_machine(OWN_MACHINE, graph.machine)
    clusters = f"{_presets()}, a TOML file or identical:N" if graph.unit else "identical:N"
    raise _no_machine(f"graph {graph.name!r}", clusters)


def _no_machine(model: str, clusters: str) -> SituateError:
    return SituateError(f"{model} brings no machine of its own: give --cluster {clusters}")


def _presets() -> str:
    return f"a preset ({', '.join(Cluster.presets())})"


def _note_rules(graph: Graph, rules: str | None) -> None:
    if rules is None:
        note(f"rules: {graph.rules}, those of the {graph.source} format; --rules changes them")
    else:
        note(f"rules: {rules}, not those of the {graph.source} format ({graph.rules})")


def read_planned(
    model: str, path: str, cluster: str | None, costs: str | None, capture: CaptureOptions
) -> tuple[Problem, Schedule]:
    """The problem of a plan, and the schedule of the plan.

    Args:
        model: as `load_graph` takes it. A file holds its own update, slices and recompute; for
            other models they come from the plan.
        path: of the plan.
        cluster: None for the preset, the identical devices or the model's own machine that the
            plan names.
        costs: the cost file of the plan, if it has one.
        capture: the optimizer, which is the plan's by default, and the dimensions.

    Raises:
        PlanError: the plan belongs to another problem.
        SituateError: an input cannot be read.
    """
    plan = Plan.read(path)
    # Before the model is read, which may take minutes.
    plan.check_costs(None if costs is None else Costs.read(costs))
    name = cluster or plan.named_cluster
    if name is None and plan.cluster != OWN_MACHINE:
        raise cluster_missing(plan)
    if not is_file(model):
        optimizer = capture.optimizer or (str(plan.update_rule) if plan.update_rule else None)
        capture = replace(
            capture, optimizer=optimizer, slices=plan.cut, recompute=plan.again, cuts=plan.op_cuts
        )
    problem = read_problem(model, ProblemOptions(name, costs, plan.objective, plan.rules), capture)
    return problem, plan.schedule(problem)


def model_and_plan(model: str | None, plan: str | None) -> tuple[str, str | None]:
    """The model and the plan of a command. A plan alone also names its network or function.

    Raises:
        SituateError: neither is there, or a plan stands alone and its model is a file.
    """
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
    """The error for a plan whose cluster is a file that was not given."""
    return PlanError(
        f"the plan was made for cluster {plan.cluster!r}, which is a file: give it with --cluster "
        "FILE"
    )
