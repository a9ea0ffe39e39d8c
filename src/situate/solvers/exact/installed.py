"""OR-tools, imported when it is first needed."""

from __future__ import annotations

from typing import Any

from situate.errors import MissingExtra


def cp_model() -> Any:
    """The module `ortools.sat.python.cp_model`.

    Raises:
        MissingExtra: OR-tools is not installed.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise MissingExtra("ortools", "exact") from None
    return cp_model
