"""`situate view`: plans in a browser, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli.options import Costs, Dim, PlannedOptimizer
from situate.errors import PlanError, SituateError

if TYPE_CHECKING:
    from situate.data.capture_options import CaptureOptions
    from situate.report.view.plan_report import PlanReport
    from situate.results.plan import Plan

MARK = b"<title>situate</title>"
"""Near the beginning of every report; without --out, no other file is overwritten."""
MARKED_BYTES = 2000
"""Bytes of a report that hold its mark."""


def view(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] PLAN [PLAN ...]",
            help="Files that 'plan --out' wrote. MODEL, as typed for 'plan', comes first if the "
            "plans name neither a network of the zoo nor a function. With --serve also files of "
            "--progress, and studies.",
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The report. Default: beside the first plan, as .html."),
    ] = None,
    is_open: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    is_served: Annotated[
        bool,
        typer.Option(
            "--serve",
            help="Serve it on this machine alone until Ctrl-C, and write no file. Searches that "
            "write a file of --progress are shown live.",
        ),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --serve. Default: a free one.")
    ] = 0,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="The cluster of plans that name no preset. May be repeated for other plans.",
        ),
    ] = None,
    costs: Costs = None,
    optimizer: PlannedOptimizer = None,
    dim: Dim = None,
) -> None:
    """Write a report of plans for the browser, one file that needs no network, or serve it.

    It has a timeline to zoom and search, memory over time by tensor, transfers, the critical path,
    modules, loads of links, the lower bound and the explanation. Several plans are side by side,
    with their differences.
    """
    from functools import partial

    from situate.cli.live.server import serve
    from situate.cli.live.state import is_live, live_state
    from situate.cli.outputs import check_outputs, check_report, write_report
    from situate.cli.step_options import parse_dims
    from situate.data.capture_options import CaptureOptions
    from situate.report.view.document import live_page, page

    if live := [path for path in files if is_live(path)]:
        _check_live(files, live, out, is_served)
        serve(live_page(), partial(live_state, files), port, is_open)
        return
    model, plans = _model_and_plans(files)
    path = out or _default_path(plans[0], is_served)
    check_outputs([model, *plans, *(cluster or ()), costs], [None if is_served else path])
    check_report(path)
    capture = CaptureOptions(optimizer, parse_dims(dim))
    reports = [_report(model, plan, cluster or [], costs, capture) for plan in plans]
    if is_served:
        serve(page(reports), None, port, is_open)
        return
    write_report(reports, path)
    if is_open:
        _open(path)


def _check_live(files: list[str], live: list[str], out: str | None, is_served: bool) -> None:
    """
    Raises:
        SituateError: files of searches stand beside others, or without --serve, or with --out.
    """
    if not is_served:
        raise SituateError(f"{live[0]} is of a search and not a plan: add --serve")
    if out is not None:
        raise SituateError("--out: a page of searches is served, not written: leave it out")
    if others := [path for path in files if path not in live]:
        raise SituateError(f"{others[0]} is not of a search like {live[0]}: view it on its own")


def _model_and_plans(files: list[str]) -> tuple[str | None, list[str]]:
    """The model, if the first name is no plan; and the plans.

    Raises:
        SituateError: there is no plan.
    """
    import os

    from situate.model import check_model
    from situate.results.plan import Plan

    first, *others = files
    if not os.path.isfile(first):
        check_model(first)
        if not others:
            raise SituateError(f"give the plan too: situate view {first} PLAN")
        return first, others
    try:
        Plan.read(first)
    except PlanError:
        if not others:
            raise
        return first, others
    return None, files


def _default_path(plan: str, is_served: bool) -> str:
    """The report beside a plan; one that is served may lie there already.

    Raises:
        SituateError: another file is there.
    """
    from pathlib import Path

    path = Path(plan).with_suffix(".html")
    if path.is_file() and not is_served:
        with path.open("rb") as file:
            if MARK not in file.read(MARKED_BYTES):
                raise SituateError(f"{str(path)!r} exists and is no report: give --out FILE")
    return str(path)


def _report(
    model: str | None, path: str, clusters: list[str], costs: str | None, capture: CaptureOptions
) -> PlanReport:
    """The report of a plan from a file.

    Raises:
        PlanError: it is no plan, or its model or its cluster is missing or another.
    """
    from pathlib import Path

    from situate.cli.inputs import model_and_plan, read_planned
    from situate.report.view.plan_report import PlanReport
    from situate.results.plan import Plan

    plan = Plan.read(path)
    name = model or model_and_plan(path, None)[0]
    problem, schedule = read_planned(name, path, _cluster(plan, clusters), costs, capture)
    return PlanReport.of_plan(Path(path).stem, plan, problem, schedule)


def _cluster(plan: Plan, clusters: list[str]) -> str | None:
    """The file of a plan's cluster, of those on the command line; None for a preset."""
    from situate.cli.language.clusters import find_cluster

    if plan.named_cluster is not None or len(clusters) < 2:
        return clusters[0] if clusters and plan.named_cluster is None else None
    return next((c for c in clusters if find_cluster(c).name == plan.cluster), clusters[0])


def _open(path: str) -> None:
    """Show a file in the browser, if there is one."""
    import webbrowser
    from pathlib import Path

    from situate.cli.terminal import note

    if not webbrowser.open(Path(path).resolve().as_uri()):
        note(f"found no browser: open {path} yourself")
