"""Scripts of benchmarks import names that the package has: most of them take too long to run
here."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.test_rooms import SOURCES

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted([*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "research").rglob("*.py")])

MODULES = SOURCES | {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in SCRIPTS
}
"""Files by the names of their modules, those of the package, of benchmarks and of research."""


@cache
def _names(module: str) -> set[str]:
    """All that a module defines or imports, anywhere in it, and its modules."""
    result = {name.rpartition(".")[2] for name in MODULES if name.rpartition(".")[0] == module}
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            result.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            result.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            result |= {each.asname or each.name for each in node.names}
    return result


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports_what_there_is(script: Path) -> None:
    tree = ast.parse(script.read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {(str(node.module), each.name) for node in imports for each in node.names}
    roots = ("situate", "benchmarks", "research")
    ours = {(module, name) for module, name in names if module.split(".")[0] in roots}
    assert {
        pair for pair in ours if pair[0] not in MODULES or pair[1] not in _names(pair[0])
    } == set()
