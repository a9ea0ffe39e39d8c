"""The file of a plan of a language model."""

from __future__ import annotations

import json
import re

import pytest
from msgspec import structs

from situate.errors import PlanError, ReadError
from situate.language.expert_kinds import with_kinds
from situate.language.layout import HOST, Layout
from situate.language.planning.plan_file import (
    is_language_plan,
    language_plan,
    read_plan,
    write_plan,
)
from tests.language.planning.homes import home_with, planner_of, small_model

HOME = home_with((4, 400, 25), (2, 100, 4))


@pytest.fixture
def file(tmp_path):
    planner = planner_of(small_model(), HOME)
    plan = planner.plan()
    path = tmp_path / "plan.json"
    write_plan(language_plan(plan, planner.model, HOME), path)
    return plan, path


# A file gives the layout that was written, for the same model and home alone.
def test_a_file_has_the_layout_that_was_written(file):
    plan, path = file
    assert is_language_plan(path)
    content = read_plan(path)
    assert content.layout() == plan.layout
    content.check(small_model(), HOME)


def test_divided_experts_are_in_the_file(tmp_path):
    model = small_model()
    planner = planner_of(model, HOME)
    away = Layout((0,), (0,) * 4, (HOST,) * 4, 0)
    plan = planner.priced(with_kinds(model, away, 2, frozenset({"down"}), 0, HOST))
    content = language_plan(plan, model, HOME)
    write_plan(content, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json").layout() == plan.layout
    for name in ("blk.99.ffn_up_exps.weight", "output.weight"):
        other = structs.replace(content, moved={name: "gpu0"})
        with pytest.raises(PlanError, match=f"moves '{re.escape(name)}', which is none of small's"):
            other.check(model, HOME)


def test_a_plan_of_another_model_or_home_is_refused(file):
    content = read_plan(file[1])
    with pytest.raises(PlanError, match="has other tensors"):
        content.check(small_model(False), HOME)
    with pytest.raises(PlanError, match="has others"):
        content.check(small_model(), home_with((4, 400, 25)))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"devices": []}, ReadError, "lists have no entries"),
        ({"experts": ["cpu"]}, ReadError, "lists have no entries"),
        ({"ubatch": "many"}, ReadError, "is no plan of a language model"),
        ({"surprise": 1}, ReadError, "is no plan of a language model"),
        ({"order": ["gpu9"]}, PlanError, "a device 'gpu9' that it does not list"),
    ],
)
def test_files_with_nonsense_are_refused(file, change, error, message):
    path = file[1]
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(error, match=message):
        read_plan(path).layout()


def test_other_files_are_no_plans(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    assert not is_language_plan(tmp_path / "x.json")
    assert not is_language_plan(tmp_path / "missing.json")
    with pytest.raises(ReadError, match="missing"):
        read_plan(tmp_path / "missing.json")
