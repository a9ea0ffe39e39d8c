from __future__ import annotations

from situate.grouping import group
from tests.solvers import families


def test_every_unit_is_alone():
    problem = families.problem("layered")
    assert len(group(problem, "none")) == problem.units
