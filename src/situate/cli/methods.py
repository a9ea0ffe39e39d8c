"""`situate methods`: the names that --method takes."""

from __future__ import annotations


def methods() -> None:
    """List the methods that can plan."""
    from situate.solvers import METHODS

    for name in METHODS:
        print(name)
