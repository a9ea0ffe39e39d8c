"""Stages in the terminal."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

from rich.console import Console

from situate.report.sharding.stages import ranges_text, stage_figures, stage_table
from situate.sharding import solve_stages
from tests.sharding.stage_problems import random_problem


def text_of(problem, plan) -> str:
    console = Console(file=StringIO(), width=160)
    console.print(stage_table(problem, plan))
    return console.file.getvalue()


# Text and plain values show the same plan.
def test_a_table_has_a_line_for_each_stage(tmp_path):
    problem = random_problem(tmp_path, 2, layers=8, devices=6, tight=0.9)
    plan = solve_stages(problem)
    assert len(text_of(problem, plan).splitlines()) == 9 + len(plan.stages)
    figures = stage_figures(problem, plan)
    assert max(stage["seconds"] for stage in figures["stages"]) == figures["value"]
    assert json.loads(json.dumps(figures))["gap"] == 0


def test_a_search_without_time_has_no_stages(tmp_path):
    problem = random_problem(tmp_path, 2)
    text = text_of(problem, solve_stages(problem, time_limit=0))
    assert "none: the search has no stages that fit in memory" in text


def test_numbers_in_a_row_are_a_range():
    assert ranges_text([5, 0, 1, 2]) == "0-2, 5"
    assert ranges_text([4]) == "4"


# Names from files are hostile.
def test_names_are_escaped(tmp_path):
    problem = replace(random_problem(tmp_path, 0, tight=2.0), name="[red]\x1b[31m\nsecond line")
    text = text_of(problem, solve_stages(problem))
    assert "\x1b" not in text
    assert "\nsecond line" not in text
