"""The command line: one thin file a command. Nothing heavy loads before a command runs."""

from __future__ import annotations

import atexit
import gc
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from situate.cli.commands import (
    bench,
    cluster,
    compare,
    convert,
    explain,
    export,
    fit,
    info,
    methods,
    plan,
    profile,
    run,
    study,
    train,
    verify,
    view,
)
from situate.cli.failures import failure_status, plain_message, thread_errors
from situate.cli.terminal import BAD_INPUT, INTERRUPTED, fail, note
from situate.version import VERSION


class _PlanCommand(TyperCommand):
    """A command for a plan, which may stand alone without its model."""

    arguments = "[MODEL] PLAN"

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line, in which the arguments depend on one another."""
        return [self.options_metavar or "", self.arguments]


class _ModelOrPlanCommand(_PlanCommand):
    """A command for a plan, or for a model that it plans first."""

    arguments = "MODEL [PLAN] | PLAN"


app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)
CLASSES = {
    explain.explain: _ModelOrPlanCommand,
    export.export: _PlanCommand,
    run.run: _PlanCommand,
    verify.verify: _PlanCommand,
}
"""Classes of commands with arguments that depend on one another."""

for command in (
    plan.plan,
    compare.compare,
    bench.bench,
    explain.explain,
    view.view,
    fit.fit,
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


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"situate {VERSION}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def situate(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Decides which device runs each op of a neural network, and in which order.

    Exit status: 0 success; 1 the reader of stdout closed it; 2 bad input, or an output that cannot
    be written, with one line on stderr that names the problem; 3 no plan fits in memory; 4 'verify'
    measured a difference; 130 interrupted before there was a plan, or before 'bench' had made all
    its runs.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    atexit.register(gc.freeze)  # else the last collection walks all of PyTorch for half a second
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: note(f"warning: {message}")
        with thread_errors() as errors:
            return _run(arguments) or (BAD_INPUT if errors else 0)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        status = app(arguments, prog_name="situate", standalone_mode=False) or 0
        sys.stdout.flush()
    except typer.TyperException as error:
        return fail(plain_message(error.format_message()))
    except Exception as error:
        return failure_status(error)
    if status == INTERRUPTED:
        note("interrupted")
    return int(status)
