"""`situate bench`: methods on families of problems, beside the best values known."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli import completions
from situate.cli.options import Cluster, Json, Objective, Threads


def bench(
    families: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FAMILY]...",
            help="Families of problems. Without any, those there are are listed.",
            autocompletion=completions.of(completions.families),
        ),
    ] = None,
    graphs: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of graphs that are a family too, a file each."),
    ] = None,
    cluster: Cluster = None,
    objective: Objective = "time",
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Folder of the families whose files do not come with situate."
        ),
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="A,B,C",
            help="Methods and peers to run.",
            autocompletion=completions.one_after_another(completions.contenders),
        ),
    ] = "auto,heft,etf,brkga",
    time_limits: Annotated[
        str, typer.Option(metavar="A,B,C", help="Seconds that each run may take.")
    ] = "1",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Runs with seeds from 0 on.")] = 1,
    instances: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many of each family, always the same. Default: all."),
    ] = None,
    threads: Threads = None,
    best_known: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Table of best-known values that this run may improve; made where it is not "
            "there. Default: the one that comes with situate, which stays as it is.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write every run, as a line of JSON each. Runs that are there are not run again.",
        ),
    ] = None,
    picture: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw performance profiles, as .svg or .png."),
    ] = None,
    gaps: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw the mean gap over time, as .svg or .png."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Run methods on families of problems and show how far each is from the best known.

    Without a family or --graphs it lists the families. --cluster and --objective are for --graphs.
    With --out, Ctrl-C or a crash loses the run that was going on and no other: the same command
    goes on from there.
    """
    from situate.cli.bench import Outputs, Wanted, list_families, run_bench

    if not families and graphs is None:
        return list_families()
    wanted = Wanted(
        families or [],
        graphs,
        cluster,
        objective,
        data,
        methods,
        time_limits,
        seeds,
        instances,
        threads,
    )
    return run_bench(wanted, Outputs(best_known, out, picture, gaps, as_json))
