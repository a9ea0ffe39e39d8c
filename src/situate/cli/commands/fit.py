"""`situate fit`: whether a training run fits on one GPU, and what would make it fit."""

from __future__ import annotations

from typing import Annotated

import typer

from situate.cli import names
from situate.cli.options import Json

OPTIMIZERS = ("adamw", "adamw-bf16", "adamw8bit", "adafactor", "lion", "momentum", "muon", "sgd")


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
    batch: Annotated[int, typer.Option(min=1, help="Samples of a micro-batch.")] = 1,
    seq: Annotated[int, typer.Option(min=1, help="Tokens of a sample.")] = 2048,
    lora: Annotated[
        int, typer.Option(min=0, max=4096, metavar="RANK", help="Train adapters of this rank.")
    ] = 0,
    weights: Annotated[
        str,
        typer.Option(
            metavar="BITS",
            help="Frozen weights beside adapters: 16-bit, 8-bit or 4-bit.",
            autocompletion=names.complete_words("16-bit", "8-bit", "4-bit"),
        ),
    ] = "16-bit",
    optimizer: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help=f"{', '.join(OPTIMIZERS)}.",
            autocompletion=names.complete_words(*OPTIMIZERS),
        ),
    ] = "adamw",
    recipe: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="States of the weights: amp (float32 with autocast), megatron or deepspeed "
            "(bfloat16 with float32 masters), pure (all bfloat16).",
            autocompletion=names.complete_words("amp", "megatron", "deepspeed", "pure"),
        ),
    ] = "amp",
    checkpointing: Annotated[
        bool, typer.Option("--checkpointing", help="Compute layers again in the backward pass.")
    ] = False,
    fused_loss: Annotated[
        bool, typer.Option("--fused-loss", help="Cross entropy stores no logits of all tokens.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Say whether training a language model fits on one GPU, with GiB by role.

    A second table has the memory with single changes and with combinations of them.
    """
    from situate.cli.language.fit import show_fit
    from situate.language.training.fine_tuning import TuningRun

    run = TuningRun(
        batch=batch,
        sequence=seq,
        optimizer=optimizer,
        rank=lora,
        weights=weights,
        checkpointing=checkpointing,
        fused_loss=fused_loss,
        recipe=recipe,
    )
    return show_fit(model, gpu, run, as_json)
