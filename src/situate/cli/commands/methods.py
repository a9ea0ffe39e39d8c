"""`situate methods`: the names that --method takes, and what each is."""

from __future__ import annotations


def methods() -> None:
    """List the methods that can plan, and what each needs."""
    from situate.solvers import METHODS

    for name, method in METHODS.items():
        learns = "learns: " if method.learns else ""
        needs = f" (needs {method.extra})" if method.extra else ""
        print(f"{name:16}{learns}{method.summary}{needs}")
