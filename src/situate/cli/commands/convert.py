"""`situate convert`: any readable model as situate's own JSON."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli.options import (
    BatchNorm,
    Dim,
    Model,
    Once,
    Optimizer,
    Recompute,
    Replicas,
    SliceDim,
    SliceLoss,
    Slices,
    Sums,
)


def convert(
    model: Model,
    out: Annotated[str, typer.Argument(metavar="OUT", help="A .json or .json.gz file.")],
    optimizer: Optimizer = None,
    dim: Dim = None,
    slices: Slices = None,
    slice_dim: SliceDim = None,
    slice_loss: SliceLoss = None,
    batch_norm: BatchNorm = None,
    sums: Sums = None,
    replicas: Replicas = None,
    once: Once = None,
    recompute: Recompute = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Capture a network of the zoo anew, with PyTorch.")
    ] = False,
) -> None:
    """Write a model as situate's own JSON, compressed where OUT ends in .gz."""
    from situate.cli.inputs import read_model, recompute_of, told_slices
    from situate.cli.outputs import check_graph, check_outputs
    from situate.cli.terminal import note
    from situate.data import graph_json

    check_graph(out)
    check_outputs([model], [out])
    cut = told_slices(slices, slice_dim, slice_loss, batch_norm, sums, replicas, once)
    again = recompute_of(recompute)
    graph = read_model(model, optimizer, dim, fresh, slices=cut, recompute=again)
    graph_json.write(graph, out)
    note(f"wrote {out}: {len(graph.ops)} ops, {len(graph.tensors)} tensors")
