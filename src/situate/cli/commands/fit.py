"""`situate fit`: whether a training run fits on one GPU, and what would make it fit."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli.language.options import TuningOptions
from situate.cli.option_groups import with_options
from situate.cli.options import Json


@with_options
def fit(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A config.json, a folder with one, or sizes: "
            "layers=32,hidden=4096,heads=32,kv=8,ffn=14336,vocab=128256.",
        ),
    ],
    *,
    gpu: Annotated[
        str,
        typer.Option(metavar="SIZE|NAME", help="Memory such as 24GiB, or a GPU such as RTX 4090."),
    ],
    tuning: TuningOptions,
    as_json: Json = False,
) -> int:
    """Say whether training a language model fits on one GPU, with GiB by role.

    A second table has the memory with single changes and with combinations of them.
    """
    from situate.cli.language.fit import show_fit

    return show_fit(model, gpu, tuning, as_json)
