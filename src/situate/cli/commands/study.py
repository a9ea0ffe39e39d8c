"""`situate study`: shows, draws and exports the studies of methods that learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli.options import Json
from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.study import Study

app = typer.Typer(no_args_is_help=False)

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Studies.")]


@app.callback(invoke_without_command=True)
def study(context: typer.Context) -> None:
    """Show, draw or export the measurements of methods that learn."""
    if context.invoked_subcommand is None:
        raise SituateError("Missing command: give 'show', 'plot' or 'export'")


@app.command()
def show(studies: Files, as_json: Json = False) -> None:
    """Show the problem of each study, and the figures of its samples."""
    from situate.cli.answer import print_json, print_table
    from situate.cli.studies import figures, table

    files = [_read(path) for path in studies]
    if as_json:
        print_json({"studies": [figures(file) for file in files]})
    else:
        print_table(table(files))


@app.command()
def plot(
    studies: Files,
    out: Annotated[str, typer.Option(metavar="FILE", help="The picture, .svg or .png.")],
) -> None:
    """Draw the learning curves of studies of one graph on one cluster."""
    from situate.cli.outputs import check_outputs, check_picture
    from situate.cli.studies import curves
    from situate.cli.terminal import note
    from situate.report.pictures.curves import draw

    check_outputs(studies, [out])
    check_picture(out, "curves")
    files = [_read(path) for path in studies]
    header = files[0].header
    # The header has each name with a hash behind it.
    title = f"{header['graph'].rsplit(' ', 1)[0]} on {header['cluster'].rsplit(' ', 1)[0]}"
    draw(curves(files), {}, out, title, header["unit"])
    note(f"wrote {out}")


@app.command()
def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A study.")],
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write it here instead of to stdout.")
    ] = None,
) -> None:
    """Export every sample as CSV: its number, batch, seconds, outcome, worker, and a device for
    each op."""
    from situate.cli.outputs import check_outputs
    from situate.cli.studies import csv
    from situate.cli.terminal import note
    from situate.files.atomic import write_bytes

    check_outputs([file], [out])
    text = csv(_read(file))
    if out is None:
        print(text, end="")
    else:
        write_bytes(out, text.encode())
        note(f"wrote {out}")


def _read(path: str) -> Study:
    from situate.study import Study

    return Study.read(path)
