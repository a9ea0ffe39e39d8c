"""Imports between the rooms of docs/architecture.md point one way, also those made when called."""

import ast
from pathlib import Path

import pytest

import situate

PACKAGE = Path(situate.__file__).parent

STRANGERS = {
    "readers": "cluster costs problem evaluators solvers profiling runtime report writers cli",
    "costs": "evaluators solvers profiling runtime report cli",
    "grouping": "readers evaluators solvers study profiling runtime report writers cli",
    "policies": "readers evaluators solvers study profiling runtime report writers cli",
    "study": "readers solvers profiling runtime report writers cli",
    "zoo": "cluster costs problem evaluators solvers profiling runtime report writers cli",
    "evaluators": "solvers study profiling report writers cli",
    "solvers": "readers profiling runtime report writers cli",
    "profiling": "evaluators solvers study report writers cli",
    "runtime": "evaluators solvers study profiling report writers cli",
    "report": "readers solvers study profiling writers cli",
    "writers": "evaluators solvers study profiling runtime cli",
}


def imported(file: Path) -> set[str]:
    """What of situate a file imports, by the first word: a room or a module beside the rooms."""
    nodes = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ImportFrom)]
    whole = {name.name for n in nodes if n.module == "situate" for name in n.names}
    return whole | {
        n.module.split(".")[1] for n in nodes if (n.module or "").startswith("situate.")
    }


@pytest.mark.parametrize("room", STRANGERS)
def test_a_room_does_not_know_those_that_come_after_it(room: str) -> None:
    files = list((PACKAGE / room).rglob("*.py"))
    assert files
    known = {file.name: imported(file) & set(STRANGERS[room].split()) for file in files}
    assert {name: strangers for name, strangers in known.items() if strangers} == {}


def test_only_the_command_line_knows_the_command_line() -> None:
    others = [f for f in PACKAGE.rglob("*.py") if f.parent.name != "cli" and f.stem != "__main__"]
    assert [file.name for file in others if "cli" in imported(file)] == []
