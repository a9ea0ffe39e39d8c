"""`situate compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situate.data import graph_json
from situate.data.graph import Tensor
from situate.solvers import LEARNERS
from tests.cli.conftest import diamond

QUICK = ("--evaluations", "200")


def compare_rows(situate, model, pair, *options):
    """The rows of a comparison."""
    run = situate("compare", model, "--cluster", pair, "--json", *QUICK, *options)
    assert run.status == 0, run.err
    return run.json["methods"]


def test_a_full_disk_does_not_take_the_answer(situate, model, pair):
    options = ("--methods", "single,heft", "--out", "/dev/full")
    run = situate("compare", model, "--cluster", pair, *options)
    assert run.status == 2
    assert "heft" in run.out


# The table has one row a method, the best first.
def test_a_single_device_is_always_among_them(situate, model, pair):
    run = situate("compare", model, "--cluster", pair, "--methods", "heft,etf", "--json", *QUICK)
    assert run.status == 0
    assert [row["method"] for row in run.json["methods"]] == ["single", "heft", "etf"]


def test_each_method_has_the_slices_that_suit_it_best(situate):
    pytest.importorskip("torch")
    command = ("tests.branches:build", "--cluster", "k80-2", "--slices", "auto")
    command = (*command, "--methods", "data_parallel,auto", "--evaluations", "200")
    rows = {row["method"]: row for row in situate("compare", *command, "--json").json["methods"]}
    assert rows["single"]["slices"] is None
    assert rows["data_parallel"]["slices"] is not None
    least = min(row["value"] for row in rows.values())
    assert rows["auto"]["value"] == least
    text = situate("compare", *command).out
    (header,) = [line for line in text.splitlines() if line.startswith(" by slices")]
    assert header.split()[2:4] == ["whole", "2"]


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
    graph_json.write(chain, tmp_path / "chain.json")
    run = situate("compare", "chain.json", "--cluster", pair, *QUICK)
    assert "One device is best" in run.out


def test_the_best_plan_is_written(situate, model, pair):
    run = situate("compare", model, "--cluster", pair, "--out", "plan.json", "--json", *QUICK)
    assert json.loads(Path("plan.json").read_text())["method"] == run.json["best"]


# Methods by default and methods by name.
def test_methods_that_do_not_apply_are_left_out_with_a_note(situate, model, pair):
    run = situate("compare", model, "--cluster", pair, "--json", *QUICK)
    assert "expert: left out: " in run.err
    assert "expert" not in [row["method"] for row in run.json["methods"]]


def test_a_method_asked_for_by_name_must_apply(situate, model, pair):
    run = situate("compare", model, "--cluster", pair, "--methods", "expert")
    assert (run.status, run.out) == (2, "")


@pytest.mark.parametrize(
    ("methods", "error"),
    [
        ("hefty", "error: unknown method 'hefty'"),
        ("heft,,etf", "error: --methods 'heft,,etf': an empty name"),
        ("", "error: --methods '': an empty name"),
    ],
)
def test_unknown_methods_are_refused(situate, model, pair, methods, error):
    run = situate("compare", model, "--cluster", pair, "--methods", methods)
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith(error)


# Methods that learn share a number of samples and run last.
def test_methods_that_learn_are_compared_if_they_are_named(situate, model, pair):
    assert not {*LEARNERS} & {row["method"] for row in compare_rows(situate, model, pair)}
    rows = compare_rows(situate, model, pair, "--methods", "post,heft,ppo", "--samples", "24")
    assert [row["method"] for row in rows] == ["single", "post", "heft", "ppo"]


def test_all_that_learn_and_random_measure_as_many_placements(situate, fan, pair):
    options = ("--methods", "post,ppo,random,heft", "--samples", "24")
    rows = {row["method"]: row for row in compare_rows(situate, fan, pair, *options)}
    assert {rows[name]["evaluations"] for name in ("post", "ppo", "random")} == {24}
    assert [name for name, row in rows.items() if row["samples"]] == ["post", "ppo"]


def test_what_is_amiss_with_a_learner_is_said_before_any_learns(situate, model, pair):
    options = ("--methods", "post,ppo", "--grouping", "none", "--groups", "3", "--study", "st")
    run = situate("compare", model, "--cluster", pair, *options)
    assert (run.status, run.out) == (2, "")
    assert not Path("st").exists()


def test_what_is_amiss_with_another_method_is_said_before_any_learns(situate, model, pair):
    options = ("--methods", "post,expert", "--study", "st")
    assert situate("compare", model, "--cluster", pair, *options).status == 2
    assert not Path("st").exists()


def test_every_method_that_learns_keeps_a_study_and_a_run(situate, model, pair):
    options = ("--methods", "post,ppo,heft", "--study", "st", "--tensorboard", "tb")
    options += ("--samples", "24")
    first = compare_rows(situate, model, pair, *options)
    assert sorted(path.name for path in Path("st").iterdir()) == ["post.study", "ppo.study"]
    assert sorted(path.name for path in Path("tb").iterdir()) == ["post", "ppo"]
    again = compare_rows(situate, model, pair, *options)
    assert [row["samples"] for row in again] == [row["samples"] for row in first]


def test_curves_have_a_line_a_method(situate, model, pair):
    options = ("--methods", "post,random,heft", "--samples", "24", "--curves", "c.svg")
    compare_rows(situate, model, pair, *options)
    text = Path("c.svg").read_text()
    for label in ("post", "random", "heft", "single", "lower bound"):
        assert f"<!-- {label}  " in text


def test_learning_options_need_a_method_that_learns(situate, model, pair):
    run = situate("compare", model, "--cluster", pair, "--curves", "c.svg")
    assert (run.status, run.out) == (2, "")
    assert "--curves: none of the methods learns" in run.err


def test_plans_that_do_not_fit_exit_3(situate, model, tight_pair):
    assert situate("compare", model, "--cluster", tight_pair, *QUICK).status == 3
