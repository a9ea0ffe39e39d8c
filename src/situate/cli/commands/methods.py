"""`situate methods`: a list of the names that --method takes."""

from __future__ import annotations


def methods() -> None:
    """List the methods of planning, with the packages that they need."""
    from situate.solvers import METHODS

    for name, method in METHODS.items():
        learns = "learns: " if method.learns else ""
        needs = f" (needs {method.extra})" if method.extra else ""
        print(f"{name:16}{learns}{method.summary}{needs}")
