"""`situate bench`: methods on families of problems, beside the best values known."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli import names
from situate.cli.bench_options import BenchOptions, BenchOutputs
from situate.cli.option_groups import with_options


@with_options
def bench(
    families: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FAMILY",
            help="Families of problems. Without any, the command lists them.",
            autocompletion=names.complete(names.families),
        ),
    ] = None,
    *,
    options: BenchOptions,
    outputs: BenchOutputs,
) -> int:
    """Run methods on families of problems and show how far each is from the best known.

    Without a family or --graphs it lists the families. --cluster and --objective are for --graphs.
    With --out, Ctrl-C or a crash loses only the current run: the same command goes on from there.
    """
    from situate.cli.bench import list_families, run_bench

    if not families and options.graphs is None:
        return list_families()
    return run_bench(families or [], options, outputs)
