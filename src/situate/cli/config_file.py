"""`--config FILE`: options of a command from a TOML file.

The callback of the option puts them into click's `default_map`; typed options come before it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from inspect import Parameter, signature
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperOption

from situate.cli.failures import plain_message
from situate.cli.option_groups import with_signature
from situate.errors import SituateError, nearest

Status = TypeVar("Status")

TABLES = ("problem", "search", "learning", "capture", "output")
"""Names of tables in which a file may group its keys."""

EXCLUDED = ("config", "help")
"""Options that a file cannot hold."""


def with_config(command: Callable[..., Status]) -> Callable[..., Status]:
    """The command with an option `--config`."""

    @functools.wraps(command)
    def run(**values: Any) -> Status:
        del values["config"]  # its callback has read the file
        return command(**values)

    config = Parameter("config", Parameter.KEYWORD_ONLY, default=None, annotation=_ConfigFile)
    return with_signature(run, [*signature(command).parameters.values(), config])


def _read_config(context: typer.Context, path: str | None) -> str | None:
    """Read a file's options, unless a shell asks for completions.

    Raises:
        SituateError: the file cannot be read, or has an unknown key or a bad value.
    """
    if path is not None and not context.resilient_parsing:
        # click asks default_map for every option that is not typed. This callback is eager, so it
        # runs before that.
        context.default_map = _config_options(path, context)
    return path


_ConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        is_eager=True,
        callback=_read_config,
        help="Read options from a TOML file, by their long names without the dashes. Options on "
        "the command line win.",
    ),
]


def _config_options(path: str, context: typer.Context) -> dict[str, Any]:
    """The options in a file, by the name of the command's parameter.

    Raises:
        SituateError: the file cannot be read, or has an unknown key or a bad value.
    """
    options = {
        name.removeprefix("--"): option
        for option in context.command.params
        if isinstance(option, TyperOption) and option.name not in EXCLUDED
        for name in option.opts
    }
    values: dict[str, Any] = {}
    for key, value in _entries(path):
        if key not in options:
            raise SituateError(
                f"{path}: {key}: {context.info_name!r} has no such option{nearest(key, options)}"
            )
        option = options[key]
        if option.name in values:
            raise SituateError(f"{path}: {key}: appears twice in the file")
        values[str(option.name)] = _value(f"{path}: {key}", option, value, context)
    return values


def _entries(path: str) -> Iterator[tuple[str, object]]:
    """The keys and values of a file, with those of its tables."""
    for key, value in _read_toml(path).items():
        if not isinstance(value, dict):
            yield key, value
        elif key in TABLES:
            yield from value.items()
        else:
            raise SituateError(f"{path}: [{key}]: no such table{nearest(key, TABLES)}")


def _read_toml(path: str) -> dict[str, Any]:
    import tomllib

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise SituateError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SituateError(f"{path}: is not TOML: {error}") from None


def _value(place: str, option: TyperOption, value: object, context: typer.Context) -> object:
    """The value of an option, checked. Error messages begin with `place`."""
    if option.is_bool_flag:
        if not isinstance(value, bool):
            raise SituateError(f"{place}: must be true or false, got {value!r}")
        return value
    if option.multiple:
        values = value if isinstance(value, list) else [value]
        return [_text(place, item) for item in values]
    text = _text(place, value)
    # The option's own parser checks ranges and numbers, as for typed text.
    try:
        return option.process_value(context, text)
    except typer.BadParameter as error:
        raise SituateError(f"{place}: {plain_message(error.message)}, got {value!r}") from None


def _text(place: str, value: object) -> str:
    """A value as a user would type it."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise SituateError(f"{place}: must be a string or a number, got {value!r}")
    return str(value)
