"""Options of commands that plan a language model."""

from collections.abc import Sequence
from typing import Annotated

import typer

from situate.cli import names
from situate.cli.option_groups import OMITTED, option_class
from situate.errors import SituateError

LANGUAGE_OBJECTIVES = ("request", "decode", "prefill", "context")
"""Objectives of plans of language models."""

TYPED = (
    *("quant", "context", "prompt", "reply", "slots", "cache_type"),
    *("draft", "draft_tokens", "draft_acceptance", "layout"),
)
"""Options of language models by their fields."""

Quant = Annotated[
    str | None,
    typer.Option(
        "--quant",
        metavar="TYPE",
        help="Type of a language model's file, such as Q4_K_M, for a config.json or a folder with "
        "one. Default: the types of the folder's safetensors files.",
    ),
]

Context = Annotated[
    int | None,
    typer.Option(
        "--context",
        min=1,
        metavar="TOKENS",
        help="Of a language model: tokens of the cache, of all slots together. Default: those of "
        "the request or the pass.",
    ),
]

CacheType = Annotated[
    str | None,
    typer.Option(
        "--cache-type",
        metavar="TYPE",
        help="Of a language model: type of its cache, such as q8_0. Default: f16.",
    ),
]


def is_language(model: str) -> bool:
    """True if a command's argument is a language model's file or folder."""
    from situate import zoo
    from situate.language import is_language_model

    return model.partition(":")[0] not in zoo.names() and is_language_model(model)


@option_class
class LanguageOptions:
    """The request to plan a language model for, as typed; None where it is not typed."""

    quant: Quant = None
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="auto|KEY=VALUE,...",
            help="Of a language model: train it, with this layout, such as "
            "dp=2,tp=4,pp=2,micro=1,batch=64,recompute=selective; auto: the fastest layouts. "
            "'compare' takes several with semicolons between them.",
        ),
    ] = None
    context: Context = None
    prompt: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="TOKENS", help="Of a language model: prompt. Default: 2000, if it fits."
        ),
    ] = None
    reply: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="TOKENS", help="Of a language model: reply. Default: 500, if it fits."
        ),
    ] = None
    slots: Annotated[
        int | None,
        typer.Option(min=1, max=1024, metavar="N", help="Of a language model: requests at once."),
    ] = None
    cache_type: CacheType = None
    draft: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Of a language model: a smaller one that guesses tokens, placed beside it.",
        ),
    ] = None
    draft_tokens: Annotated[
        int | None,
        typer.Option(
            "--draft-tokens",
            min=1,
            max=64,
            metavar="N",
            help="Guesses of the draft before each pass of the model. Default: 3.",
        ),
    ] = None
    draft_acceptance: Annotated[
        float | None,
        typer.Option(
            "--draft-acceptance",
            min=0.0,
            max=1.0,
            metavar="P",
            help="Probability that a guess of the draft is right. Default: 0.7.",
        ),
    ] = None

    def refuse(self, flags: Sequence[str] = ()) -> None:
        """
        Raises:
            SituateError: an option for language models was typed for another model.
        """
        values = {name: getattr(self, name) for name in TYPED} | {"flags": flags or None}
        for name, value in values.items():
            if value is not None:
                option = name.replace("_", "-")
                raise SituateError(f"--{option} is for language models (GGUF, config.json)")


@option_class
class ExplainedLanguageOptions(LanguageOptions):
    """The request of a plan to explain."""

    layout: Annotated[str | None, OMITTED] = None


OPTIMIZERS = ("adamw", "adamw-bf16", "adamw8bit", "adafactor", "lion", "momentum", "muon", "sgd")
"""Optimisers of `fit`."""


@option_class
class TuningOptions:
    """The run to fit on one GPU, as typed."""

    batch: Annotated[int, typer.Option(min=1, help="Samples of a micro-batch.")] = 1
    seq: Annotated[int, typer.Option(min=1, help="Tokens of a sample.")] = 2048
    lora: Annotated[
        int, typer.Option(min=0, max=4096, metavar="RANK", help="Train adapters of this rank.")
    ] = 0
    weights: Annotated[
        str,
        typer.Option(
            metavar="BITS",
            help="Frozen weights beside adapters: 16-bit, 8-bit or 4-bit.",
            autocompletion=names.complete_words("16-bit", "8-bit", "4-bit"),
        ),
    ] = "16-bit"
    optimizer: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help=f"{', '.join(OPTIMIZERS)}.",
            autocompletion=names.complete_words(*OPTIMIZERS),
        ),
    ] = "adamw"
    recipe: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="States of the weights: amp (float32 with autocast), megatron or deepspeed "
            "(bfloat16 with float32 masters), pure (all bfloat16).",
            autocompletion=names.complete_words("amp", "megatron", "deepspeed", "pure"),
        ),
    ] = "amp"
    checkpointing: Annotated[
        bool, typer.Option("--checkpointing", help="Compute layers again in the backward pass.")
    ] = False
    fused_loss: Annotated[
        bool, typer.Option("--fused-loss", help="Cross entropy stores no logits of all tokens.")
    ] = False


PASS_TYPED = ("phase", "depth", "ubatch", "context", "cache_type", "quant")
"""Options of one pass by their fields."""


@option_class
class PassOptions:
    """The pass of a language model to convert, as typed; None where it is not typed."""

    phase: Annotated[
        str | None,
        typer.Option(
            metavar="PHASE",
            help="Of a language model: decode (one token) or prefill (a ubatch). Default: decode.",
        ),
    ] = None
    depth: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="TOKENS", help="Of a language model: tokens in the cache. Default: 0."
        ),
    ] = None
    ubatch: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="TOKENS", help="Of a language model: tokens of a prefill. Default: 512."
        ),
    ] = None
    context: Context = None
    cache_type: CacheType = None
    quant: Quant = None
    layout: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Of a language model: a training step in this layout, such as dp=2,tp=4,pp=2, "
            "on the GPUs of --cluster.",
        ),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET|FILE|GPUS",
            help="With --layout: a preset, a TOML file, or GPUs such as 2x8xH100.",
        ),
    ] = None

    def refuse_pass(self) -> None:
        """
        Raises:
            SituateError: an option of a single pass was typed beside --layout.
        """
        for name in PASS_TYPED:
            if getattr(self, name) is not None:
                option = name.replace("_", "-")
                raise SituateError(f"--{option} is for one pass: leave it out beside --layout")

    def refuse_cluster(self) -> None:
        """
        Raises:
            SituateError: a cluster was typed for a single pass.
        """
        if self.cluster is not None:
            raise SituateError("--cluster is for training steps: give --layout, or leave it out")

    def refuse(self) -> None:
        """
        Raises:
            SituateError: an option for language models was typed for another model.
        """
        for name in (*PASS_TYPED, "cluster"):
            if getattr(self, name) is not None:
                option = name.replace("_", "-")
                raise SituateError(f"--{option} is for language models (GGUF, config.json)")
