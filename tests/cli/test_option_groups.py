"""Classes of options as options of a command."""

import ast
import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import situate
from situate.cli.option_groups import OMITTED, After, refuse_others, with_options

SOURCE = Path(situate.__file__).parent


@dataclass(frozen=True)
class Inner:
    width: int = 2
    height: int = 3


@dataclass(frozen=True)
class Outer:
    name: Annotated[str, typer.Option()]
    inner: Inner = field(default_factory=Inner)
    colour: Annotated[str, typer.Option(), After("width")] = "red"
    hidden: Annotated[bool, OMITTED] = True


@with_options
def draw(target: str, *, outer: Outer, copies: int = 1) -> tuple[object, ...]:
    return target, outer, copies


def test_fields_become_parameters_in_place():
    parameters = inspect.signature(draw).parameters
    assert [*parameters] == ["target", "name", "width", "colour", "height", "copies"]
    assert parameters["name"].default is inspect.Parameter.empty
    assert (parameters["height"].default, parameters["height"].annotation) == (3, int)


def test_the_command_gets_objects():
    values = {"target": "t", "name": "n", "width": 5, "height": 6, "colour": "blue", "copies": 2}
    assert draw(**values) == ("t", Outer("n", Inner(5, 6), "blue"), 2)


# A kind of model may lack some of a command's options.
@pytest.mark.parametrize(
    ("options", "message"),
    [([], None), (["--width", "3"], None), (["--as-json"], "--json: not here")],
)
def test_options_that_a_model_lacks_are_refused(options, message):
    def command(context: typer.Context, *, width: int = 1, as_json: bool = False) -> None:
        refuse_others(context, ["width"], "not here")

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, options)
    assert (result.exception and str(result.exception)) == message


# Only generated signatures are long.
def test_no_function_of_these_rooms_has_more_than_ten_parameters():
    files = [*(SOURCE / "cli").rglob("*.py"), *(SOURCE / "zoo").glob("*.py"), SOURCE / "model.py"]
    counts = {
        f"{file.name}:{node.name}": len(node.args.args) + len(node.args.kwonlyargs)
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: count for name, count in counts.items() if count > 10} == {}
