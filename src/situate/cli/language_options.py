"""Options of commands that plan a language model."""

from collections.abc import Sequence
from typing import Annotated

import typer

from situate.cli.option_groups import option_class
from situate.errors import SituateError

LANGUAGE_OBJECTIVES = ("request", "decode", "prefill", "context")
"""Objectives of plans of language models."""

TYPED = ("quant", "context", "prompt", "reply", "slots", "cache_type", "draft")
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


def is_language(model: str) -> bool:
    """True if a command's argument is a language model's file or folder."""
    from situate import zoo
    from situate.language import is_language_model

    return model.partition(":")[0] not in zoo.names() and is_language_model(model)


@option_class
class LanguageOptions:
    """The request to plan a language model for, as typed; None where it is not typed."""

    quant: Quant = None
    context: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="TOKENS",
            help="Of a language model: tokens of the cache, of all slots together. Default: those "
            "of the request.",
        ),
    ] = None
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
    cache_type: Annotated[
        str | None,
        typer.Option(
            "--cache-type",
            metavar="TYPE",
            help="Of a language model: type of its cache, such as q8_0. Default: f16.",
        ),
    ] = None
    draft: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Of a language model: a smaller one that guesses tokens; its memory is reserved "
            "on the first GPU.",
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
