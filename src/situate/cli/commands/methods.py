"""`situate methods`: the names that --method takes, and what each is."""

from __future__ import annotations

NEEDS = {
    "metis": "pymetis: pip install 'situate[baselines]'",
    "scotch": "Scotch: apt-get install scotch",
    "mincut": "Scotch: apt-get install scotch",
    "spotlight": "PyTorch: pip install 'situate[torch]'",
    "colocrl": "PyTorch: pip install 'situate[torch]'",
    "hierarchical": "PyTorch: pip install 'situate[torch]'",
}
"""What a method needs besides situate."""


def methods() -> None:
    """List the methods that can plan, and what each needs."""
    from situate.solvers import LEARNERS, METHODS

    for name in METHODS:
        learns = "learns: " if name in LEARNERS else ""
        needs = f" (needs {NEEDS[name]})" if name in NEEDS else ""
        print(f"{name:16}{learns}{_what(METHODS[name])}{needs}")


def _what(module: str) -> str:
    """The first sentence of a solver's module, without citations."""
    import ast
    from importlib.util import find_spec
    from pathlib import Path

    spec = find_spec(f"situate.solvers.{module}")
    source = Path(str(spec and spec.origin)).read_text("utf-8")
    text = ast.get_docstring(ast.parse(source)) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return first.partition("`: ")[2].partition(" (")[0].rstrip(".")
