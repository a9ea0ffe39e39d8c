"""Without OR-tools one line says what to install."""

from __future__ import annotations

import sys

import pytest

from situate.errors import MissingExtra
from situate.solvers import solve
from tests.solvers.families import problem


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools", None)
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(MissingExtra, match=r"needs ortools.*pip install 'situate\[exact\]'"):
        solve(problem("chain"), "cp_sat", evaluations=10)
