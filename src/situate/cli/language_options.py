"""Options of commands that plan a language model."""

from typing import Annotated

import typer

from situate.cli.option_groups import option_class

CacheType = Annotated[
    str,
    typer.Option(metavar="TYPE", help="Type of a language model's cache, such as f16 or q8_0."),
]


@option_class
class LanguageOptions:
    """The request to plan a language model for, as typed; None where it is not typed."""

    quant: Annotated[
        str | None,
        typer.Option(
            "--quant",
            metavar="TYPE",
            help="Type of a language model's file, such as Q4_K_M, for a config.json or a folder "
            "with one.",
        ),
    ] = None
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
