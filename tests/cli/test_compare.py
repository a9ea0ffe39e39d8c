"""`situate compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situate.cli.compare import best_of
from situate.errors import SituateError
from situate.graph import Tensor
from situate.writers import situate_json
from tests.cli.conftest import diamond

QUICK = ("--time-limit", "0.2")


def test_a_single_device_is_always_among_them(situate, model, pair):
    run = situate("compare", model, "--cluster", pair, "--methods", "heft,etf", "--json", *QUICK)
    assert run.status == 0
    assert [row["method"] for row in run.json["methods"]] == ["single", "heft", "etf"]


def test_the_best_has_the_smallest_value(situate, model, pair):
    content = situate("compare", model, "--cluster", pair, "--json", *QUICK).json
    best = next(row for row in content["methods"] if row["method"] == content["best"])
    assert best["value"] == min(row["value"] for row in content["methods"] if row["feasible"])
    assert content["methods"][0]["method"] == "single"


def test_text_shows_every_method(situate, model, pair):
    run = situate("compare", model, "--cluster", pair, "--methods", "single,auto", *QUICK)
    assert "single" in run.out
    assert "auto" in run.out


def test_it_says_so_when_one_device_is_best(situate, tmp_path, pair):
    chain = diamond(ops=diamond().ops[:2], tensors=(Tensor("t", 0, 1000, (1,)),))
    situate_json.write(chain, tmp_path / "chain.json")
    run = situate("compare", "chain.json", "--cluster", pair, *QUICK)
    assert "One device is best" in run.out


def test_the_best_plan_is_written(situate, model, pair):
    run = situate("compare", model, "--cluster", pair, "--out", "plan.json", "--json", *QUICK)
    assert json.loads(Path("plan.json").read_text())["method"] == run.json["best"]


def test_methods_that_do_not_apply_are_left_out_with_a_note(situate, model, pair):
    run = situate("compare", model, "--cluster", pair, "--json", *QUICK)
    assert "expert: left out: " in run.err
    assert "expert" not in [row["method"] for row in run.json["methods"]]


def test_a_method_asked_for_by_name_must_apply(situate, model, pair):
    run = situate("compare", model, "--cluster", pair, "--methods", "expert")
    assert (run.status, run.out) == (2, "")


@pytest.mark.parametrize("methods", ["hefty", "heft,,etf", ""])
def test_unknown_methods_are_refused(situate, model, pair, methods):
    run = situate("compare", model, "--cluster", pair, "--methods", methods)
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("error: unknown method ")


def test_plans_that_do_not_fit_exit_3(situate, model, tight_pair):
    assert situate("compare", model, "--cluster", tight_pair, *QUICK).status == 3


def test_nothing_to_compare_is_an_error():
    with pytest.raises(SituateError, match="no method"):
        best_of([])
