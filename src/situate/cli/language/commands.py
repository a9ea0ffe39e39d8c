"""Commands on language models: their plans, comparisons and exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from situate.cli.answer import print_json, print_table
from situate.cli.language.options import LanguageOptions, PassOptions
from situate.cli.language.request import check_options, read_request
from situate.cli.outputs import check_outputs
from situate.cli.terminal import INFEASIBLE, note, working
from situate.data.cluster import Cluster
from situate.data.graph import Graph
from situate.errors import PlanError, SituateError
from situate.files.atomic import write_bytes
from situate.language import read_language_model
from situate.language.cache import CacheOptions, cache_type
from situate.language.home import Home, home_of
from situate.language.model import LanguageModel
from situate.language.phase_graph import PassSize, phase_graph
from situate.language.planning.advice import changes, idle_gpus, phase_shares
from situate.language.planning.drafting import home_beside
from situate.language.planning.exports import ENGINES, Export, ik_memory_note
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
from situate.report import language_plan as report

if TYPE_CHECKING:
    from situate.cli.search_options import OutputOptions, ProblemOptions


UBATCH = 512
"""Tokens of a prefill, llama.cpp's default."""


def plan_language_model(
    context: typer.Context,
    model: str,
    problem: ProblemOptions,
    language: LanguageOptions,
    outputs: OutputOptions,
) -> int:
    """`situate plan` of a language model."""
    check_options(context, "plan")
    outputs.check([model, problem.cluster, language.draft])
    request = read_request(model, problem, language)
    with working(f"planning {request.planner.model.name}"):
        planner, plan = _best(request.with_draft())
        alone = request.planner if request.draft else None
        _show(planner, plan, model, outputs.as_json, outputs.out, outputs.picture, alone)
    return 0


def _best(planner: Planner) -> tuple[Planner, HomePlan]:
    """The best plan, of the longest context where that is the objective."""
    if planner.work.objective == "context":
        planner = longest_context(planner)
    return planner, planner.plan()


def _show(
    planner: Planner,
    plan: HomePlan,
    path: str,
    as_json: bool,
    out: str | None = None,
    picture: str | None = None,
    alone: Planner | None = None,
) -> None:
    """Print a plan, and write its file and its picture.

    Args:
        planner: with the model and the home.
        plan: of it.
        path: of the model's file.
        as_json: print JSON.
        out, picture: files to write.
        alone: the planner without a draft, for comparison.
    """
    shares = {}
    if plan.layout.split == "layer":
        shares = {phase: phase_shares(planner, plan, phase) for phase in ("prefill", "decode")}
    answer = report.Answer(
        planner,
        plan,
        shares,
        floor_seconds(planner),
        changes(planner, plan),
        idle_gpus(planner, plan),
        ENGINES["llamacpp"](_export(planner, plan, path)),
        _decode_seconds(alone),
        _engine_memory(planner, plan, path),
    )
    if out is not None:
        write_plan(language_plan(plan, planner.model, planner.home), out)
        note(f"wrote {out}")
    if picture is not None:
        from situate.report.pictures.home import draw

        draw(planner, plan, picture)
        note(f"wrote {picture}")
    if as_json:
        print_json(report.plan_figures(answer))
    else:
        print_table(report.plan_table(answer))


def _engine_memory(planner: Planner, plan: HomePlan, path: str) -> list[Comparison]:
    """The plan's memory by llama.cpp itself; empty if it is not installed or cannot say."""
    program = find_fit_params()
    is_file = planner.model.source == "gguf" and planner.model.complete
    if program is None or not is_file or plan.work.drafting is not None:
        return []
    try:
        return compare_with_engine(program, planner, plan, path)
    except SituateError as error:
        note(f"memory not checked by llama.cpp: {error}")
        return []


def _decode_seconds(planner: Planner | None) -> float | None:
    """Seconds of a token of the best plan; None without a planner, or if nothing fits."""
    try:
        return None if planner is None else _best(planner)[1].speed.decode
    except SituateError:
        return None


def _export(planner: Planner, plan: HomePlan, path: str) -> Export:
    """A plan to write as an engine's command or configuration."""
    gpus = planner.home.accelerators
    return Export(
        plan.layout,
        plan.options,
        planner.model,
        planner.home.device_names,
        path,
        [gpu.memory - gpu.context for gpu in gpus],
        plan.work.drafting,
        [gpu.name for gpu in gpus],
    )


def compare_language_model(
    context: typer.Context,
    model: str,
    problem: ProblemOptions,
    language: LanguageOptions,
    outputs: OutputOptions,
    flags: Sequence[str],
) -> int:
    """`situate compare` of a language model: its plan, other rules, and lines of flags."""
    check_options(context, "compare")
    check_outputs([model, problem.cluster, language.draft], [outputs.out])
    request = read_request(model, problem, language)
    for line in flags:
        _of_flags(request.planner, line)
    with working(f"planning {request.planner.model.name}"):
        with_draft = request.with_draft()
        rows = [(line, _of_flags(with_draft, line)) for line in flags]
        planner, best = _best(with_draft)
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
        planner.home.device_names,
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
    check_options(context, "explain")
    request = read_request(model, problem, language)
    if path is None:
        planner, plan = _best(request.with_draft())
    else:
        planner, plan = _of_file(request.planner.model, request.planner.home, path)
    _show(planner, plan, model, as_json)
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
    if file.request.drafting is not None:
        home = home_beside(home, file.request.drafting)
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
    export = _export(planner, plan, model)
    write_bytes(out, ENGINES[to](export).encode() + b"\n")
    note(f"wrote {out}")
    if to == "ik_llamacpp":
        note(ik_memory_note(export))
    if not plan.feasible:
        note("warning: the plan does not fit")


def language_graph(model: str, passes: PassOptions) -> Graph:
    """A pass of a language model as a graph, for `situate convert`.

    Raises:
        SituateError: the model cannot be read, or the pass cannot be.
    """
    network = read_language_model(model, passes.quant)
    phase: Any = passes.phase or "decode"
    tokens = 1 if phase == "decode" else passes.ubatch or UBATCH
    if phase == "decode" and passes.ubatch is not None:
        raise SituateError("--ubatch: is for --phase prefill; decode passes one token")
    size = PassSize(phase, tokens, passes.depth or 0)
    kind = "F16" if passes.cache_type is None else cache_type(passes.cache_type).name
    context = passes.context or size.depth + size.tokens
    return phase_graph(network, CacheOptions(context, kind, kind, ubatch=tokens), size)
