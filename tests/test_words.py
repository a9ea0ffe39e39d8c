"""Docstrings begin with a noun phrase or a sentence, not with a question word left hanging."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "src/situate", "tests")
OPENING = re.compile(r"(What|Whether|Of|How)\b")


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_docstring_begins_as_half_a_question(folder: str) -> None:
    paths = sorted((REPOSITORY / folder).rglob("*.py"))
    found = [line for path in paths for line in _half_questions(path)]
    assert paths, "no such folder"
    assert not found, "\n".join(found)


def _half_questions(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            # A docstring of a module, class, function, constant or attribute alike.
            case ast.Expr(value=ast.Constant(value=str(text))) if OPENING.match(text.lstrip()):
                place = f"{path.relative_to(REPOSITORY)}:{node.lineno}"
                yield f"{place}: {text.strip().splitlines()[0]}"
