"""Plans of sharding problems in the terminal."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from situate.report.sharding.strategies import sharding_figures, sharding_table
from situate.sharding import solve_sharding
from tests.sharding.problems import random_problem


def text_of(problem, plan) -> str:
    console = Console(file=StringIO(), width=160)
    console.print(sharding_table(problem, plan))
    return console.file.getvalue()


# Text and plain values show the same plan.
def test_a_table_has_cost_bound_and_memory():
    problem = random_problem(0)
    plan = solve_sharding(problem, time_limit=None, rounds=60)
    text = text_of(problem, plan)
    assert f"{plan.cost}" in text
    assert f"{plan.bound}" in text
    assert f"{plan.limit} B" in text
    assert sharding_figures(problem, plan)["cost"] == plan.cost


def test_strategies_that_do_not_fit_have_no_cost():
    problem = random_problem(0)
    plan = replace(solve_sharding(problem, time_limit=None, rounds=1), peak=problem.limit + 1)
    assert "none: these strategies do not fit" in text_of(problem, plan)


# Names from files are hostile.
def test_names_are_escaped():
    problem = replace(random_problem(0), name="[red]\x1b[31m\nsecond line")
    text = text_of(problem, solve_sharding(problem, time_limit=None, rounds=1))
    assert "\x1b" not in text
    assert "\nsecond line" not in text
