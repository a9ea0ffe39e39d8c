"""The command line: one thin file a command. Nothing heavy loads before a command runs."""

from __future__ import annotations

import atexit
import contextlib
import gc
import select
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from situate.cli.commands import (
    bench,
    cluster,
    compare,
    convert,
    explain,
    export,
    info,
    methods,
    plan,
    profile,
    run,
    study,
    train,
    verify,
)
from situate.cli.shortage import shortage
from situate.cli.terminal import BAD_INPUT, FAILED, INTERRUPTED, fail, note
from situate.cli.threads import reported
from situate.cli.usage import TakesModelOrPlan, TakesPlan
from situate.errors import MissingExtra, SituateError
from situate.host.streams import discard
from situate.version import VERSION

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)
CLASSES = {
    explain.explain: TakesModelOrPlan,
    export.export: TakesPlan,
    run.run: TakesPlan,
    verify.verify: TakesPlan,
}
"""Classes of commands whose arguments go together otherwise than one by one."""

for command in (
    plan.plan,
    compare.compare,
    bench.bench,
    explain.explain,
    info.info,
    convert.convert,
    export.export,
    methods.methods,
    profile.profile,
    run.run,
    verify.verify,
):
    app.command(cls=CLASSES.get(command))(command)
app.add_typer(train.app, name="train")
app.add_typer(cluster.app, name="cluster")
app.add_typer(study.app, name="study")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"situate {VERSION}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def situate(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Decides which device runs each op of a neural network, and in which order.

    Exit status: 0 done; 1 whoever read stdout closed it; 2 bad input, or an output that cannot be
    written, with one line on stderr that says what is wrong; 3 no plan that fits in memory was
    found; 4 'verify' found a difference; 130 interrupted before there was a plan, or before 'bench'
    had made all its runs.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    atexit.register(gc.freeze)  # else the last collection walks all of PyTorch, half a second long
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: note(f"warning: {message}")
        with reported() as failed:
            return _run(arguments) or (BAD_INPUT if failed else 0)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        status = app(arguments, prog_name="situate", standalone_mode=False) or 0
        sys.stdout.flush()
    except typer.TyperException as error:
        return fail(_plain(error.format_message()))
    except Exception as error:
        return _failed(error)
    if status == INTERRUPTED:
        note("interrupted")
    return int(status)


def _failed(error: Exception) -> int:
    """The status after an error, which becomes one line; raises it again where it is a fault of
    situate."""
    if (reason := shortage(error)) is not None:
        own = isinstance(error, SituateError) and not isinstance(error, MissingExtra)
        return fail(f"{error}; {reason}" if own else reason)
    if isinstance(error, SituateError):
        return fail(str(error))
    if isinstance(error, OSError):
        return _broken(error)
    if isinstance(error, RecursionError):
        return fail(f"the input is too deeply nested: {error}")
    raise error


def _plain(message: str) -> str:
    """An error of typer about a value, without the words of the library that looks at it."""
    for said, plain in (
        ("a valid integer, unable to parse string as an integer", "a whole number, such as 10"),
        ("a valid number, unable to parse string as a number", "a number, such as 0.1"),
        ("Input should be ", "must be "),
    ):
        message = message.replace(said, plain)
    return message


def _broken(error: OSError) -> int:
    """The status after a failed read or write; silent where nobody reads what is printed."""
    silent = isinstance(error, BrokenPipeError) and _unread()
    discard(sys.stdout)
    if silent:
        return FAILED
    return fail(f"{error.filename or 'output'}: {error.strerror or error}")


def _unread() -> bool:
    """True if a reader has closed the pipe that is printed into."""
    poll = select.poll()
    with contextlib.suppress(OSError):
        poll.register(sys.stdout, 0)  # an error is reported in any case
    return bool(poll.poll(0))
