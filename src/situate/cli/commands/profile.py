"""`situate profile`: the durations of a model's ops on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli.option_groups import with_options
from situate.cli.options import Cpus, Json, Optimizer
from situate.cli.step_options import FixedCuts, FixedSliceOptions, fixed_cuts

if TYPE_CHECKING:
    from situate.data.cluster import Cluster

MAX_WALL_RATIO = 1.15
"""Wall time over counted time above which a machine is too busy for predictions."""

MAX_SYNCHRONISATION = 1e-4
"""Seconds of a synchronisation above which a device lacks a core of its own."""


@with_options
def profile(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A network of the zoo (such as resnet50, or resnet50:inference), or "
            "package.module:function returning a model, inputs and loss.",
        ),
    ],
    *,
    out: Annotated[str, typer.Option(metavar="FILE", help="Write the costs, as JSON.")],
    cluster: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Devices of this machine. Default: all that it has."),
    ] = None,
    cpus: Cpus = None,
    cluster_out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the cluster with measured links, as TOML."),
    ] = None,
    optimizer: Optimizer = None,
    slices: FixedSliceOptions,
    cuts: FixedCuts = None,
    as_json: Json = False,
) -> None:
    """Measure a model's ops on the devices of this machine, and tensors between them.

    'plan' reads both files: --costs for the ops, --cluster for the links. The model runs on every
    device, so memory must hold a copy of it for each.
    """
    from situate.cli.answer import print_json, print_table
    from situate.cli.outputs import check_outputs
    from situate.cli.terminal import note, working
    from situate.files.atomic import write_bytes
    from situate.host.discover import to_toml
    from situate.profiling.profile import cluster_from_costs
    from situate.profiling.profile import profile as measure
    from situate.report.costs import costs_table, step_seconds

    check_outputs([model, cluster], [out, cluster_out])
    machine = _devices(cluster, cpus)
    with working(f"measuring {model}"):
        of_ops = fixed_cuts(cuts, slices)
        result = measure(model, machine, optimizer, slices.fixed_slices(), of_ops)
    costs, graph = result.costs, result.graph
    for device in costs.devices:
        if device.wall > MAX_WALL_RATIO:
            note(
                f"warning: while {device.name} was measured, other programs made its steps "
                f"{device.wall:.1f} times as long; they are not counted"
            )
    if costs.synchronisation > MAX_SYNCHRONISATION:
        note(
            f"warning: devices waited {costs.synchronisation * 1e6:.0f} µs for one another: "
            "other programs held them up, or there are more of them than cores; links are as good "
            "as unknown: measure again"
        )
    try:
        costs.write(out)
        if cluster_out is not None:
            write_bytes(cluster_out, to_toml(cluster_from_costs(machine, costs)).encode())
        for path in filter(None, (out, cluster_out)):
            note(f"wrote {path}")
    finally:
        if as_json:
            devices = {d.name: step_seconds(d, graph) for d in costs.devices}
            print_json({"graph": graph.name, "hash": graph.hash, "devices": devices})
        else:
            print_table(costs_table(costs, graph))


def _devices(cluster: str | None, cpus: int | None) -> Cluster:
    """The devices of this machine to measure."""
    from situate.cli.terminal import working
    from situate.data.cluster import Cluster
    from situate.errors import SituateError
    from situate.host.discover import discover

    if cluster is not None and cpus is not None:
        raise SituateError("--cpus describes this machine anew: leave --cluster out")
    if cluster is not None:
        return Cluster.find(cluster)
    with working("looking at this machine"):
        return discover(cpus)
