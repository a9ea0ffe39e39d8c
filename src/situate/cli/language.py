"""Commands on language models: their plans, comparisons and exports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from situate.cli.answer import print_json, print_table
from situate.cli.language_options import LanguageOptions
from situate.cli.outputs import check_outputs
from situate.cli.terminal import INFEASIBLE, note, working
from situate.data.cluster import Cluster
from situate.errors import PlanError, SituateError
from situate.files.atomic import write_bytes
from situate.language import read_language_model
from situate.language.cache import CacheOptions, cache_type
from situate.language.home import Home, home_of
from situate.language.model import LanguageModel
from situate.language.planning.advice import changes, idle_gpus, phase_shares
from situate.language.planning.command_lines import ENGINES, Export
from situate.language.planning.fit_params import (
    Comparison,
    compare_with_engine,
    find_fit_params,
)
from situate.language.planning.flags import parse_flags
from situate.language.planning.floor import floor_seconds
from situate.language.planning.longest import longest_context
from situate.language.planning.plan_file import (
    is_language_plan,
    language_plan,
    read_plan,
    write_plan,
)
from situate.language.planning.planner import HomePlan, Planner
from situate.language.planning.rivals import rivals
from situate.language.planning.workload import Workload
from situate.report import language_plan as report

if TYPE_CHECKING:
    from situate.cli.search_options import OutputOptions, ProblemOptions

COMMON = ("model", "cluster", "objective", "quant", "context", "prompt", "reply", "slots")
ALLOWED = {
    "plan": (*COMMON, "cache_type", "draft", "out", "as_json"),
    "compare": (*COMMON, "cache_type", "draft", "out", "as_json", "flags"),
    "explain": (*COMMON, "cache_type", "draft", "plan", "as_json"),
}
"""Options of a command that language models have."""

PROMPT, REPLY, CONTEXT = 2000, 500, 4096


def _check_options(context: typer.Context, command: str) -> None:
    """
    Raises:
        SituateError: an option was typed that is for other models.
    """
    for name in context.params:
        source = context.get_parameter_source(name)
        typed = source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP")
        if typed and name not in (*ALLOWED[command], "config"):
            option = {"as_json": "json"}.get(name, name.replace("_", "-"))
            raise SituateError(
                f"--{option}: has no meaning for a language model, which is planned by one exact "
                "method: leave it out"
            )


@dataclass(frozen=True)
class Request:
    """A planner for what was typed.

    Attributes:
        planner: with the model, the home and the work.
        drafting: flags for a draft model.
    """

    planner: Planner
    drafting: tuple[str, ...] = ()


def _read_request(model: str, problem: ProblemOptions, language: LanguageOptions) -> Request:
    """The planner of a command.

    Raises:
        SituateError: the model or the cluster cannot be read, or the request cannot be.
    """
    network = read_language_model(model, language.quant)
    for warning in network.warnings:
        note(f"warning: {warning}")
    if problem.cluster is None:
        raise SituateError(
            f"{model}: give --cluster, a TOML file that describes the machine; 'situate cluster "
            "discover' writes one"
        )
    home = home_of(Cluster.find(problem.cluster))
    objective: Any = "request" if problem.objective == "time" else problem.objective
    kind = "F16" if language.cache_type is None else cache_type(language.cache_type).name
    slots = language.slots or 1
    work = _workload(language, objective, network, slots)
    tokens = language.context or max(CONTEXT, slots * (work.prompt + work.reply))
    if network.sizes.context and language.context is None:
        tokens = min(tokens, slots * network.sizes.context)
    options = CacheOptions(tokens, kind, kind, slots=slots)
    home, drafting = _with_draft(home, network, language, options)
    planner = Planner(network, home, options, work)
    planner.check()
    return Request(planner, drafting)


def _workload(
    language: LanguageOptions, objective: Any, model: LanguageModel, slots: int
) -> Workload:
    """The request; the default one is shortened to the context."""
    most = (language.context or slots * (model.sizes.context or 2**31)) // slots
    reply = language.reply or max(1, min(REPLY, most // 5))
    prompt = language.prompt or max(1, min(PROMPT, most - reply))
    return Workload(prompt, reply, objective)


def _with_draft(
    home: Home, model: LanguageModel, language: LanguageOptions, options: CacheOptions
) -> tuple[Home, tuple[str, ...]]:
    """The home without the memory of a draft model, and the flags of that model.

    Raises:
        SituateError: the draft has another vocabulary, or no GPU has room for it.
    """
    if language.draft is None:
        return home, ()
    draft = read_language_model(language.draft)
    if draft.sizes.vocabulary != model.sizes.vocabulary:
        raise SituateError(
            f"--draft {language.draft}: has a vocabulary of {draft.sizes.vocabulary:,} tokens, and "
            f"{model.name} one of {model.sizes.vocabulary:,}: they must be the same"
        )
    gpus = home.accelerators
    if not gpus:
        raise SituateError("--draft: the home has no GPU for it")
    number = max(range(len(gpus)), key=lambda gpu: gpus[gpu].bandwidth)
    size = draft.size + draft.cache_bytes(options) + draft.state_bytes(options.slots)
    if size > gpus[number].memory:
        raise SituateError(f"--draft {language.draft}: does not fit on {gpus[number].name}")
    smaller = replace(gpus[number], memory=gpus[number].memory - size)
    accelerators = (*gpus[:number], smaller, *gpus[number + 1 :])
    flags = ("-md", language.draft, "-ngld", "99", "-devd", f"CUDA{number}")
    note(f"{draft.name} takes {size / 2**20:,.0f} MiB of {smaller.name}; speeds are without it")
    return replace(home, accelerators=accelerators), flags


def plan_language_model(
    context: typer.Context,
    model: str,
    problem: ProblemOptions,
    language: LanguageOptions,
    outputs: OutputOptions,
) -> int:
    """`situate plan` of a language model."""
    _check_options(context, "plan")
    check_outputs([model, problem.cluster, language.draft], [outputs.out])
    request = _read_request(model, problem, language)
    with working(f"planning {request.planner.model.name}"):
        planner, plan = _best(request.planner)
        _show(request, planner, plan, model, outputs.as_json, outputs.out)
    return 0


def _best(planner: Planner) -> tuple[Planner, HomePlan]:
    """The best plan, of the longest context where that is the objective."""
    if planner.work.objective == "context":
        planner = longest_context(planner)
    return planner, planner.plan()


def _show(
    request: Request, planner: Planner, plan: HomePlan, path: str, as_json: bool, out: str | None
) -> None:
    shares = {}
    if plan.layout.split == "layer":
        shares = {phase: phase_shares(planner, plan, phase) for phase in ("prefill", "decode")}
    better, idle = changes(planner, plan), idle_gpus(planner, plan)
    command = _command_line(planner, plan, path, "llamacpp", request.drafting)
    engine = _engine_memory(planner, plan, path)
    figures = (planner, plan, shares, floor_seconds(planner), better, idle, command, engine)
    if out is not None:
        write_plan(language_plan(plan, planner.model, planner.home), out)
        note(f"wrote {out}")
    if as_json:
        print_json(report.plan_figures(*figures))
    else:
        print_table(report.plan_table(*figures))


def _engine_memory(planner: Planner, plan: HomePlan, path: str) -> list[Comparison]:
    """The plan's memory by llama.cpp itself; empty if it is not installed or cannot say."""
    program = find_fit_params()
    if program is None or not (planner.model.source == "gguf" and planner.model.complete):
        return []
    try:
        return compare_with_engine(program, planner, plan, path)
    except SituateError as error:
        note(f"memory not checked by llama.cpp: {error}")
        return []


def _command_line(
    planner: Planner, plan: HomePlan, path: str, engine: str, more: Iterable[str] = ()
) -> str:
    """A plan as an engine's command or configuration."""
    memory = [gpu.memory - gpu.context for gpu in planner.home.accelerators]
    export = Export(
        plan.layout, plan.options, planner.model, len(memory), path, memory, tuple(more)
    )
    return ENGINES[engine](export)


def compare_language_model(
    context: typer.Context,
    model: str,
    problem: ProblemOptions,
    language: LanguageOptions,
    outputs: OutputOptions,
    flags: Sequence[str],
) -> int:
    """`situate compare` of a language model: its plan, other rules, and lines of flags."""
    _check_options(context, "compare")
    check_outputs([model, problem.cluster, language.draft], [outputs.out])
    planner = _read_request(model, problem, language).planner
    rows = [(line, _of_flags(planner, line)) for line in flags]
    with working(f"planning {planner.model.name}"):
        planner, best = _best(planner)
        rows = [("situate", best), *rivals(planner), *rows]
    for name, plan in rows:
        for text in plan.notes:
            note(f"{name}: {text}")
    if outputs.out is not None:
        write_plan(language_plan(best, planner.model, planner.home), outputs.out)
        note(f"wrote {outputs.out}")
    if outputs.as_json:
        content = {name: report.row_figures(planner.model, planner, plan) for name, plan in rows}
        print_json({"model": planner.model.name, "layouts": content})
    else:
        print_table(report.comparison_table(planner, rows))
    return 0


def _of_flags(planner: Planner, line: str) -> HomePlan:
    """The figures of a line of flags, with its own context and types of the cache."""
    gpus = planner.home.accelerators
    launch = parse_flags(
        line,
        planner.model,
        [gpu.name for gpu in gpus],
        [gpu.memory for gpu in gpus],
        planner.options,
    )
    own = replace(planner, options=launch.options)
    own.check()
    return own.priced(launch.layout, launch.notes)


def explain_language_model(
    context: typer.Context,
    model: str,
    path: str | None,
    problem: ProblemOptions,
    language: LanguageOptions,
    as_json: bool,
) -> int:
    """`situate explain` of a language model, with a plan or by planning first."""
    _check_options(context, "explain")
    request = _read_request(model, problem, language)
    planner = request.planner
    if path is None:
        planner, plan = _best(planner)
    else:
        planner, plan = _of_file(planner.model, planner.home, path)
    _show(request, planner, plan, model, as_json, None)
    return 0 if plan.feasible else INFEASIBLE


def _of_file(model: LanguageModel, home: Home, path: str) -> tuple[Planner, HomePlan]:
    """A plan in a file with its figures.

    Raises:
        SituateError: it is of another model or cluster, or no plan.
    """
    if not is_language_plan(path):
        raise PlanError(f"{path}: is no plan of a language model")
    file = read_plan(path)
    file.check(model, home)
    planner = Planner(model, home, file.cache, file.request)
    return planner, planner.priced(file.layout())


def export_language_plan(
    to: str, out: str, model: str, path: str, cluster: str | None, quant: str | None
) -> None:
    """`situate export` of a plan of a language model.

    Raises:
        SituateError: the engine does not exist or cannot run the plan, or a file is missing.
    """
    from situate.cli.names import check_name

    check_name(to, ENGINES, "target of a language model")
    check_outputs([model, path, cluster], [out])
    if cluster is None:
        raise SituateError(f"{path}: give --cluster, the file that the plan was made for")
    network, home = read_language_model(model, quant), home_of(Cluster.find(cluster))
    planner, plan = _of_file(network, home, path)
    text = _command_line(planner, plan, model, to)
    write_bytes(out, text.encode() + b"\n")
    note(f"wrote {out}")
    if not plan.feasible:
        note("warning: the plan does not fit")
