"""`situate cluster`: the presets, one cluster, or this machine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from situate.cli import names
from situate.cli.options import Cpus, Json
from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.data.cluster import Cluster

app = typer.Typer(no_args_is_help=False)


@app.callback(invoke_without_command=True)
def cluster(context: typer.Context) -> None:
    """List clusters, show one, or describe this machine."""
    if context.invoked_subcommand is None:
        raise SituateError("Missing command: give 'list', 'show NAME' or 'discover'")


@app.command("list")
def list_presets(as_json: Json = False) -> None:
    """List the clusters that come with situate."""
    from situate.cli.answer import print_json
    from situate.data.cluster import Cluster

    presets = {name: Cluster.preset(name).description for name in Cluster.presets()}
    if as_json:
        print_json({"clusters": presets})
        return
    for name, description in presets.items():
        print(f"{name:16} {description}")


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE|identical:N|GPUS",
            help="A preset, a TOML file, N equal devices, or GPUs such as 2x8xH100.",
            autocompletion=names.complete(names.presets),
        ),
    ],
    as_json: Json = False,
) -> None:
    """Show the devices and links of one cluster."""
    from situate.cli.answer import print_json
    from situate.cli.language.clusters import find_cluster
    from situate.report.text import printable

    cluster = find_cluster(name)
    if as_json:
        print_json(_content(cluster))
    else:
        for line in _lines(cluster):
            print(printable(line))


@app.command()
def discover(
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write it here instead of to stdout.")
    ] = None,
    cpus: Cpus = None,
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Measure rates for language models, in under a minute."),
    ] = False,
    probe_model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL.gguf", help="With --probe: decode it with llama-bench."),
    ] = None,
) -> None:
    """Describe this machine as a cluster file."""
    from situate.cli.outputs import check_outputs
    from situate.cli.terminal import note, working
    from situate.files.atomic import write_bytes
    from situate.host import discover as machine

    check_outputs([], [out])
    if probe_model is not None and not probe:
        raise SituateError("--probe-model: needs --probe")
    with working("measuring this machine"):
        cluster = machine.discover(cpus)
        if probe:
            from situate.host.machine import usable_cpus
            from situate.language.probe import probe as measure

            cluster = measure(cluster, usable_cpus(), probe_model)
        text = machine.to_toml(cluster)
    if out is None:
        print(text, end="")
        return
    write_bytes(out, text.encode())
    note(f"wrote {out}")


def _content(cluster: Cluster) -> dict[str, Any]:
    """The cluster as plain objects, with sizes in bytes and rates per second."""
    import msgspec

    return {
        "name": cluster.name,
        "description": cluster.description,
        "hash": cluster.hash,
        "transfers": cluster.transfers,
        "synchronisation": cluster.synchronisation,
        "devices": msgspec.to_builtins(cluster.devices),
        "links": [
            {
                "from": source,
                "to": target,
                "channel": cluster.channels[cluster.channel[i, j]],
                "latency": cluster.latency[i, j].item(),
                "bandwidth": cluster.bandwidth[i, j].item(),
            }
            for i, source in enumerate(cluster.names)
            for j, target in enumerate(cluster.names)
            if i != j
        ],
    }


def _lines(cluster: Cluster) -> Iterator[str]:
    from situate.report.units import count_text, size_text, time_text

    yield f"{cluster.name}: {cluster.description}" if cluster.description else cluster.name
    yield f"transfers are {cluster.transfers}"
    if cluster.synchronisation:
        duration = time_text(cluster.synchronisation)
        yield f"synchronisation: {duration} for every tensor and control edge that crosses"
    yield ""
    for device in cluster.devices:
        memory = "unlimited memory" if device.memory is None else size_text(device.memory)
        rates = ", ".join(f"{count_text(rate)}FLOP/s {name}" for name, rate in device.flops.items())
        yield f"{device.name:12} {device.kind:6} {device.model or '-':16} {memory:>18}  {rates}"
    yield ""
    for link in _content(cluster)["links"]:
        speed = "free" if math.isinf(link["bandwidth"]) else f"{count_text(link['bandwidth'])}B/s"
        yield (
            f"{link['from']:12} -> {link['to']:12} {speed:>14}, latency "
            f"{time_text(link['latency'])}, channel {link['channel']}"
        )
