"""Options of `situate bench`: the runs to make, and the files to write."""

from typing import Annotated

import typer

from situate.cli import names
from situate.cli.option_groups import option_class
from situate.cli.options import Cluster, Json, Objective, Threads


@option_class
class BenchOptions:
    """The runs of a bench besides its families, as typed."""

    graphs: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of graphs, one per file, as a family of its own."),
    ] = None
    cluster: Cluster = None
    objective: Objective = "time"
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Folder of the families whose files do not come with situate."
        ),
    ] = None
    methods: Annotated[
        str,
        typer.Option(
            metavar="A,B,C",
            help="Methods and peers to run.",
            autocompletion=names.complete_list(names.contenders),
        ),
    ] = "auto,heft,etf,brkga"
    time_limits: Annotated[
        str,
        typer.Option(
            metavar="A,B,C",
            help="Seconds that each run may take, or 0.5x for half of an instance's published "
            "limit.",
        ),
    ] = "1"
    seeds: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of runs, with seeds from 0 on.")
    ] = 1
    instances: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Largest number of instances of each family, always the same ones. Default: all.",
        ),
    ] = None
    threads: Threads = None


@option_class
class BenchOutputs:
    """The files that a bench writes, and the form of its answer."""

    best_known: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Table of best-known values that this run may improve; it is created if missing. "
            "Default: the one that comes with situate, which stays as it is.",
        ),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write every run as a line of JSON. Runs in the file are not repeated.",
        ),
    ] = None
    picture: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw performance profiles, as .svg or .png."),
    ] = None
    gaps: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw the median gap over time, as .svg or .png."),
    ] = None
    as_json: Json = False
