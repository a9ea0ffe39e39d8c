"""Imports point down the floors of docs/architecture.md and never in a circle.

Every module of the package is looked at, and every import in it: also those inside functions and
those for type checkers alone. Modules that are found by name, such as the methods of solvers, are
not imports.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import situate

PACKAGE = Path(situate.__file__).parent
REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "architecture.md"

FLOORS = (
    "errors version _core",
    "files validation",
    "data",
    "bounds grouping host language readers schedule sharding",
    "policies simulation torch_capture",
    "results zoo",
    "model runtime",
    "evaluators profiling report",
    "study writers",
    "solvers",
    "bench slicing",
    "situate cli",
    "__main__",
)
"""Rooms, and modules beside them, from the ground up: each imports from floors below its own only.
`situate` is the package's own `__init__`, which names the public face."""

EXCEPTIONS = {
    ("situate.results.result", "situate.report.html"): (
        "a notebook asks the result itself for a picture, by its method `_repr_html_`"
    ),
}
"""Imports that point up, with the reason."""

ROOMS, MODULES, FILES = 24, 8, 25
"""At most so many rooms, modules beside them, and files in a folder."""

FULL_FOLDERS = {
    "benchmarks/results": "one record a benchmark and its settings, found by its name",
}
"""Folders with more files than that, with the reason."""


def module_name(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(file): file for kind in ("pyi", "py") for file in PACKAGE.rglob(f"*.{kind}")}


@cache
def imports(module: str) -> set[str]:
    """The modules of the package that a module imports, anywhere in it."""
    result: set[str] = set()
    for node in ast.walk(ast.parse(SOURCES[module].read_text())):
        if isinstance(node, ast.Import):
            result |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports are not looked at"
            result |= {
                inner if (inner := f"{node.module}.{name.name}") in SOURCES else str(node.module)
                for name in node.names
            }
    return {name for name in result - {module} if name.split(".")[0] == "situate"}


def room(module: str) -> str:
    """The room or the module beside the rooms to which a module belongs."""
    return [*module.split("."), "situate"][1]


FLOOR = {name: height for height, names in enumerate(FLOORS) for name in names.split()}


def test_every_room_has_its_floor():
    assert {room(module) for module in SOURCES} == set(FLOOR)


@pytest.mark.parametrize("name", FLOOR)
def test_a_room_imports_from_lower_floors_only(name):
    wrong = {
        (module, other)
        for module in SOURCES
        for other in imports(module)
        if room(module) == name != room(other) and FLOOR[room(other)] >= FLOOR[name]
    }
    assert wrong - EXCEPTIONS.keys() == set()


def test_the_portfolio_builds_on_the_other_methods_and_none_on_it():
    portfolio = "situate.solvers.auto"
    outside = {module for module in SOURCES if not module.startswith(portfolio)}
    assert {m for m in outside if any(name.startswith(portfolio) for name in imports(m))} == set()


def test_no_modules_import_one_another_in_a_circle():
    below = {
        module: {other for other in imports(module) if (module, other) not in EXCEPTIONS}
        for module in SOURCES
    }
    assert len([*TopologicalSorter(below).static_order()]) == len(SOURCES)  # a circle is an error


def test_exceptions_are_few_and_there():
    assert len(EXCEPTIONS) <= 2
    assert [edge for edge in EXCEPTIONS if edge[1] not in imports(edge[0])] == []


def test_there_are_few_rooms_and_few_modules_beside_them():
    inside = [path for path in PACKAGE.iterdir() if any(path.rglob("*.py"))]
    assert len([path for path in inside if path.is_dir()]) <= ROOMS
    assert len([path for path in PACKAGE.glob("*.py") if path.stem != "__init__"]) <= MODULES


@pytest.mark.parametrize("top", ["src", "cpp", "tests", "benchmarks"])
def test_no_folder_holds_too_many_files(top: str):
    files = (
        path.relative_to(REPOSITORY) for path in (REPOSITORY / top).rglob("*") if path.is_file()
    )
    held = Counter(path.parent.as_posix() for path in files if path.suffix != ".pyc")
    assert held
    full = {folder for folder, count in held.items() if count > FILES}
    assert full == {folder for folder in FULL_FOLDERS if folder.startswith(top)}


def test_the_page_on_architecture_shows_every_room():
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    names = {name for name in FLOOR if (PACKAGE / name).is_dir()}
    assert {name for name in names if not any(f"`{name}/`" in row for row in rows)} == set()


def test_the_page_on_architecture_shows_the_same_floors():
    drawn = PAGE.read_text().split("```text\n")[1].split("```")[0].replace("(the public names)", "")
    floors = [set(line.split()) for line in reversed(drawn.splitlines())]
    assert floors == [set(names.split()) for names in FLOORS[:-1]]


# Two types of one name in one namespace are one to the linker, which keeps the code of either.
def test_no_two_types_of_the_core_have_one_name() -> None:
    names: Counter[tuple[str, str]] = Counter()
    for path in (REPOSITORY / "cpp").rglob("*.*"):
        text = re.sub(
            r"^namespace \{.*?^\}  // namespace$", "", path.read_text(), flags=re.M | re.S
        )
        space = re.search(r"^namespace ([\w:]+) \{", text, re.M)
        for name in re.findall(r"^(?:struct|class) (\w+)(?: final)?(?: : [^{;]*)? \{", text, re.M):
            names[space[1] if space else "", name] += 1
    assert names["situate::search", "TensorCopy"] == 1
    assert not [name for name, count in names.items() if count > 1]
