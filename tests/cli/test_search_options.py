"""Options of a search."""

from __future__ import annotations

import pytest

from situate.cli.search_options import OutputOptions, ProblemOptions, SearchBudget
from situate.errors import SituateError


def test_a_budget_has_limits_that_can_be_met():
    assert SearchBudget(0.0, 1).seed == 0
    with pytest.raises(SituateError, match="--time-limit: must not be negative, got -1"):
        SearchBudget(time_limit=-1.0)
    with pytest.raises(SituateError, match="--time-limit: must not be negative, got nan"):
        SearchBudget(time_limit=float("nan"))
    with pytest.raises(SituateError, match="--evaluations: must be at least 1, got 0"):
        SearchBudget(evaluations=0)


def test_a_problem_has_an_objective_and_rules_that_exist():
    assert ProblemOptions().objective == "time"
    with pytest.raises(SituateError, match="unknown objective 'tme'; did you mean 'time'"):
        ProblemOptions(objective="tme")
    with pytest.raises(SituateError, match="unknown rules 'regel'"):
        ProblemOptions(rules="regel")


# No file is written twice, or over an input.
def test_files_are_checked_together(tmp_path):
    plan = str(tmp_path / "plan.json")
    OutputOptions(out=plan).check([None])
    with pytest.raises(SituateError, match="used twice"):
        OutputOptions(out=plan, schedule=plan).check([])
    with pytest.raises(SituateError, match="used twice"):
        OutputOptions(out=plan).check([], plan)
    with pytest.raises(SituateError, match="must end in"):
        OutputOptions(picture=str(tmp_path / "p.gif")).check([])
