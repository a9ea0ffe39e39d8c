"""Batches that a command cannot cut: one line, with the place and the remedy."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

BRANCHES = "tests.branches:build"

REFUSED = {
    "more slices than samples": (BRANCHES, ("17",), "more than the 16 samples .*give at most 16"),
    "shares that do not add up": (
        BRANCHES,
        ("3:2",),
        "slices 3:2: 16 samples cannot be cut in these shares: .*such as 9:7",
    ),
    "a dimension that is not the batch": (
        BRANCHES,
        ("2", "--slice-dim", "0=1"),
        r"input 1 of shape \[16, 4\] has 16 samples .*the inputs before it 8: --slice-dim 1=AXIS",
    ),
    "a dimension that is not there": (
        BRANCHES,
        ("2", "--slice-dim", "0=5"),
        r"input 0 of shape \[16, 8\] has no dimension 5 .*: --slice-dim 0=AXIS, or 0=whole",
    ),
    "an input that is not there": (
        BRANCHES,
        ("2", "--slice-dim", "7=0"),
        "no input is called '7'; known: 0, 1",
    ),
    "an input without a batch": (
        "tests.cli.commands.uncut:scaled",
        ("2",),
        r"input 2 of shape \[\] has no dimension 0 to be cut along: --slice-dim 2=whole if",
    ),
    "inputs without a batch": (
        "tests.cli.commands.uncut:whole",
        ("2", "--slice-dim", "0=whole"),
        "no input is cut, so that all slices are the same: leave --slices out",
    ),
    "a size as a number that no slice has": (
        "tests.cli.commands.uncut:numbered",
        ("2",),
        r"commands.uncut.py:\d+: .* not on 4 of its 8 samples: let sizes that it has as numbers",
    ),
    "a size as a number that deals samples out anew": (
        "tests.cli.commands.uncut:dealt",
        ("2",),
        "aten.view .loss.* deals out the samples of the batch anew: .*let its sizes follow",
    ),
    "a loss that is neither a mean nor a sum": (
        "tests.cli.commands.uncut:rooted",
        ("3:1",),
        "and aten.sqrt .loss.* stands in the way: .*: --slice-loss mean, or sum",
    ),
    "no batch norm": (BRANCHES, ("2", "--batch-norm", "batch"), "leave --batch-norm out"),
    "inference": (f"{BRANCHES}:inference", ("2",), "leave them out for inference"),
}


# Each case is one reason why a batch cannot be cut.
@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_cut_is_refused_in_a_line(situate, why):
    model, options, message = REFUSED[why]
    run = situate("plan", model, "--cluster", "k80-2", "--slices", *options, "--out", "plan.json")
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert re.search(f"^error: {model}: .*{message}", run.err)


def test_a_file_holds_one_size_and_a_plan_is_of_its_slices(situate):
    assert situate("convert", BRANCHES, "four.json", "--slices", "4").status == 0
    options = ("--cluster", "k80-2", "--slices", "2")
    run = situate("plan", "four.json", *options)
    assert (run.status, run.err.count("\n")) == (2, 1)
    assert (
        "four.json: a file holds a step of one size, and slices need it at theirs: give" in run.err
    )
    single = ("--method", "single", "--out", "two.json")
    assert situate("plan", BRANCHES, *options, *single).status == 0
    run = situate("explain", "four.json", "two.json")
    assert (run.status, run.err.count("\n")) == (2, 1)
    assert "the plan is of slices 2, and the graph of slices 4: give those of the plan" in run.err
    run = situate("explain", BRANCHES, "two.json", "--slices", "4")
    assert run.err == "error: --slices: the plan is already made: leave out one of the two\n"
