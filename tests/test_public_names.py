"""A function or class that only its own module uses begins with an underscore.

It is used elsewhere where another file of the repository imports it or takes it from its module, or
where a string or a page names it by its module's path, as the table of methods does. Commands are
found by their decorator, and a class is used by those who hold values that are annotated with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.test_rooms import SOURCES

REPOSITORY = Path(__file__).parents[1]
FOUND_BY_NAME = re.compile(
    r"situate\.(zoo\..*|grouping\.\w+:labels|writers\.cuts\.dtensor_(functions|products):.*)"
)
"""Networks, which read as the models that users write, the rules of grouping, and functions that an
export copies into its file."""


@cache
def _code() -> dict[str, ast.Module]:
    """The modules of the package."""
    return {
        name: ast.parse(path.read_text("utf-8"))
        for name, path in SOURCES.items()
        if path.suffix == ".py"
    }


@cache
def _others() -> dict[Path, str]:
    """The texts of other files of the repository."""
    return {
        path: path.read_text("utf-8")
        for pattern in (
            "tests/**/*.py",
            "benchmarks/**/*.py",
            "research/**/*.py",
            "docs/**/*.md",
            "*.md",
        )
        for path in REPOSITORY.glob(pattern)
    }


def _uses(tree: ast.Module) -> set[tuple[str, str]]:
    """Modules with the names that are imported or taken from them, or named behind their path."""
    modules, result, taken = set[str](), set[tuple[str, str]](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            result |= {(str(node.module), each.name) for each in node.names}
            modules |= {f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Attribute):
            taken.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            result |= set(_named(node.value))
    return result | {(module, name) for module in modules & _code().keys() for name in taken}


def _named(text: str) -> Iterator[tuple[str, str]]:
    """Names behind the paths of modules, whole or from the folder of solvers on."""
    # The code of a process that is started stands in a string too.
    for module, name in re.findall(r"([\w.]+)(?:[.:]| import )(\w+)", text):
        yield module, name
        yield f"situate.solvers.{module}", name


@cache
def _uses_inside() -> dict[str, set[tuple[str, str]]]:
    return {user: _uses(tree) for user, tree in _code().items()}


@cache
def _uses_outside(path: Path) -> set[tuple[str, str]]:
    text = _others()[path]
    return _uses(ast.parse(text)) if path.suffix == ".py" else set(_named(text))


def _used(module: str, name: str) -> bool:
    if any((module, name) in uses for user, uses in _uses_inside().items() if user != module):
        return True
    # Reading all tests takes seconds, so only those that have both words are looked at.
    last = module.rsplit(".")[-1]
    near = (path for path, text in _others().items() if name in text and last in text)
    return any((module, name) in _uses_outside(path) for path in near)


def _public(tree: ast.Module) -> Iterator[str]:
    """Functions and classes that are public by their names, but for those that are annotations."""
    annotations = _annotations(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            command = isinstance(node, ast.FunctionDef) and node.decorator_list
            if not command and node.name not in annotations:
                yield node.name


def _annotations(tree: ast.Module) -> set[str]:
    """Names in the annotations of arguments, results and fields."""
    result: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            result.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            result.append(node.returns)
    names = (name for annotation in result if annotation for name in ast.walk(annotation))
    return {name.id for name in names if isinstance(name, ast.Name)}


def test_what_only_its_own_module_uses_is_private() -> None:
    public = {(module, name) for module, tree in _code().items() for name in _public(tree)}
    own = {f"{module}:{name}" for module, name in public if not _used(module, name)}
    assert {name for name in own if not FOUND_BY_NAME.fullmatch(name)} == set()
