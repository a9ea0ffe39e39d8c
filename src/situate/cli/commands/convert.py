"""`situate convert`: any readable model as situate's own JSON."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli.language.options import PassOptions, is_language
from situate.cli.option_groups import with_options
from situate.cli.options import Model
from situate.cli.step_options import FixedStepOptions


@with_options
def convert(
    model: Model,
    out: Annotated[str, typer.Argument(metavar="OUT", help="A .json or .json.gz file.")],
    *,
    step: FixedStepOptions,
    passes: PassOptions,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Capture a network of the zoo again, with PyTorch.")
    ] = False,
) -> None:
    """Write a model as situate's own JSON, compressed if OUT ends in .gz; of a language model one
    pass, or with --layout a training step."""
    from dataclasses import replace

    from situate.cli.inputs import read_model
    from situate.cli.outputs import check_graph, check_outputs
    from situate.cli.terminal import note
    from situate.data import graph_json

    check_graph(out)
    check_outputs([model], [out])
    if passes.layout is not None:
        from situate.cli.language.training import layout_graph

        passes.refuse_pass()
        graph = layout_graph(model, passes.cluster, passes.layout)
    elif is_language(model):
        from situate.cli.language.commands import language_graph

        passes.refuse_cluster()
        graph = language_graph(model, passes)
    else:
        passes.refuse()
        graph = read_model(model, replace(step.capture(), fresh=fresh))
    graph_json.write(graph, out)
    note(f"wrote {out}: {len(graph.ops)} ops, {len(graph.tensors)} tensors")
