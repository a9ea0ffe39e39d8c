"""`situate explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

QUICK = ("--evaluations", "200")


# The explanation agrees with the schedule.
def test_the_critical_path_adds_up_to_the_makespan(situate, model, pair):
    content = situate("explain", model, "--cluster", pair, "--json", *QUICK).json
    path = content["critical_path"]
    assert path["compute"] + path["transfer"] + path["waiting"] == pytest.approx(
        content["makespan"]
    )


def test_text_shows_path_transfers_devices_and_memory(situate, model, pair):
    run = situate("explain", model, "--cluster", pair, *QUICK)
    assert run.status == 0
    for title in ("critical path", "costliest transfers", "devices", "memory at its fullest"):
        assert title in run.out


def test_a_full_disk_does_not_take_the_answer(situate, model, pair):
    run = situate("explain", model, "--cluster", pair, "--schedule", "/dev/full", *QUICK)
    assert run.status == 2
    assert "critical path" in run.out


# A plan stands for its model, cluster and search.
def test_a_written_plan_is_explained_as_it_is(situate, model, pair):
    situate("plan", model, "--cluster", pair, "--method", "single", "--out", "plan.json")
    content = situate("explain", model, "plan.json", "--cluster", pair, "--json").json
    assert content["makespan"] == 4.0
    assert content["transfers"] == []


def test_a_plan_on_a_preset_needs_no_cluster(situate, model):
    situate("plan", model, "--cluster", "identical:2", "--out", "plan.json", *QUICK)
    assert situate("explain", model, "plan.json").status == 0


def test_a_plan_of_the_zoo_is_explained_without_naming_its_model(situate):
    arguments = ("--cluster", "k80-2", "--method", "single", "--out", "plan.json")
    planning = situate("plan", "inception_v3", *arguments, "--json")
    explained = situate("explain", "plan.json", "--json")
    assert explained.json["makespan"] == planning.json["makespan"]


def test_a_plan_of_a_file_needs_its_model(situate, model, pair):
    situate("plan", model, "--cluster", pair, "--method", "single", "--out", "plan.json")
    run = situate("explain", "plan.json")
    assert run.status == 2
    assert run.err == "error: plan.json is a plan: give its model before it: MODEL plan.json\n"


@pytest.mark.parametrize(
    "option",
    [
        ("--method", "auto"),
        ("--time-limit", "5"),
        ("--objective", "memory"),
        ("--cuts", "heads=2"),
    ],
)
def test_a_plan_that_is_given_is_not_searched_for(situate, model, pair, option):
    situate("plan", model, "--cluster", pair, "--method", "single", "--out", "plan.json")
    run = situate("explain", model, "plan.json", "--cluster", pair, *option)
    assert run.status == 2
    assert run.err == (f"error: {option[0]}: the plan is already made: leave out one of the two\n")


# Plans that do not fit, or do not belong to the problem.
def test_a_plan_that_does_not_fit_is_explained_and_exits_3(situate, model, tight_pair):
    run = situate("explain", model, "--cluster", tight_pair, *QUICK)
    assert run.status == 3
    assert "would fit with" in run.out


def test_a_plan_for_another_cluster_is_refused(situate, model, pair, tight_pair):
    situate("plan", model, "--cluster", pair, "--out", "plan.json", *QUICK)
    run = situate("explain", model, "plan.json", "--cluster", "identical:2")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("error: ")
    assert "cluster" in run.err


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b"[" * 100_000])
def test_what_is_no_plan_is_refused(situate, model, pair, content):
    Path("plan.json").write_bytes(content)
    run = situate("explain", model, "plan.json", "--cluster", pair)
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("error: plan.json: ")
    assert run.err.count("\n") == 1
