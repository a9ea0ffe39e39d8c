"""`situate export`: a plan in another tool's format."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli.options import Cluster, Dim, Model, Optimizer

TARGETS = ("perfetto", "accelerate", "dot")


def export(
    model: Model,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A file that 'plan --out' wrote.")],
    to: Annotated[str, typer.Option(help="perfetto, accelerate or dot.")],
    out: Annotated[str, typer.Option(metavar="FILE", help="The file to write.")],
    cluster: Cluster = None,
    optimizer: Optimizer = None,
    dim: Dim = None,
) -> None:
    """Write a plan as a Perfetto trace, an accelerate device map or a Graphviz graph."""
    import importlib

    from situate.cli.inputs import check_name, read_planned
    from situate.cli.outputs import check_outputs
    from situate.cli.terminal import note

    check_name(to, TARGETS, "target")
    check_outputs([model, plan, cluster or ""], [out])
    problem, schedule = read_planned(model, plan, cluster, optimizer, dim)
    importlib.import_module(f"situate.writers.{to}").write(problem, schedule, out)
    note(f"wrote {out}")
