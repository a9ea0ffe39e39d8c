"""Programs that tests of some methods need, and the reason to skip them without it."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

import pytest

from situate.solvers.partitioners.scotch import PROGRAMS

_no_metis = find_spec("pymetis") is None
_no_highs = find_spec("highspy") is None
_no_scotch = not any(map(shutil.which, PROGRAMS))
_no_ortools = find_spec("ortools") is None
MISSING = {
    "metis": _no_metis,
    "m_sct": _no_highs,
    "scotch": _no_scotch,
    "mincut": _no_scotch,
    "cp_sat": _no_ortools,
}
"""By method, true if a program or package that it needs is missing."""

needs_metis = pytest.mark.skipif(_no_metis, reason="pymetis is not installed: pip install pymetis")
needs_highs = pytest.mark.skipif(_no_highs, reason="highspy is not installed: pip install highspy")
needs_scotch = pytest.mark.skipif(
    _no_scotch, reason="Scotch is not installed: apt-get install scotch"
)
needs_ortools = pytest.mark.skipif(
    _no_ortools, reason="OR-tools is not installed: pip install ortools"
)
PARTITIONERS = [
    pytest.param("metis", marks=needs_metis),
    pytest.param("scotch", marks=needs_scotch),
    pytest.param("mincut", marks=needs_scotch),
]
"""The methods, each skipped where it cannot run."""
