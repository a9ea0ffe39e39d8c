"""Options of the step to capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.cli.step_options import (
    FixedSliceOptions,
    FixedStepOptions,
    SliceOptions,
    StepOptions,
    fixed_cuts,
    parse_dims,
)
from situate.data.cuts import parse_cuts
from situate.data.slices import AutoSlices, Slices
from situate.errors import SituateError


def test_by_default_the_batch_stays_whole():
    assert SliceOptions().fixed_slices() is None
    capture = StepOptions().capture()
    assert (capture.slices, capture.recompute, capture.check_slices) == (None, (), True)


def test_options_of_slices_become_slices():
    cut = SliceOptions("3:1", ["0=1"], "sum", batch_norm="batch", sums="tree", replicas="2")
    expected = Slices((3, 1), {"0": 1}, "sum", (1, 1), (), "batch", "tree")
    assert cut.fixed_slices() == StepOptions(cut=cut).capture().slices == expected


def test_planning_chooses_slices_by_the_other_options():
    cut = SliceOptions("auto", ["0=1"], "mean", check=False)
    assert cut.open_slices() == AutoSlices({"0": 1}, "mean")
    capture = StepOptions("adam", ["a=2"], cut, "layers.*,head").capture()
    assert (capture.slices, capture.check_slices, capture.dims) == (None, False, {"a": 2})
    assert (capture.optimizer, capture.recompute) == ("adam", ("layers.*", "head"))


# Constructors refuse options that contradict one another.
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slice_dim": ["0=1"]}, "--slice-dim describes slices: give --slices too"),
        ({"slices": "auto", "replicas": "2"}, "--replicas: assigns copies to slices"),
        ({"slices": "auto", "once": ["a"]}, "--once: assigns copies to slices"),
        ({"slices": "auto", "sums": "auto"}, "--sums auto: needs a number of slices"),
        ({"slices": "two"}, "slices 'two': must be a number of equal slices"),
    ],
)
def test_slices_that_contradict_their_options_are_refused(options, message):
    with pytest.raises(SituateError) as error:
        SliceOptions(**options)
    assert str(error.value).startswith(message)


# One order of sums is for the gradients of slices and for the partial results of parts.
@pytest.mark.parametrize("slices", [None, "2"])
def test_partial_results_are_added_up_in_the_order_of_sums(slices):
    cut = SliceOptions(slices, sums="tree")
    assert StepOptions(cut=cut, cuts=["heads=4"]).capture().cuts.sums == "tree"
    assert fixed_cuts(["heads=4"], cut).sums == "tree"


@pytest.mark.parametrize(
    ("sums", "cuts", "message"),
    [
        ("tree", None, "--sums describes slices or cuts: give --slices too, or names to --cuts"),
        ("tree", ["auto"], "--sums describes slices or cuts"),
        ("auto", ["heads=4"], "--sums auto: chooses for slices: give chain or tree for cuts alone"),
        ("star", ["heads=4"], "cuts: partial results are added up in a chain or in a tree"),
    ],
)
def test_an_order_of_sums_needs_sums(sums, cuts, message):
    with pytest.raises(SituateError) as error:
        StepOptions(cut=SliceOptions(sums=sums), cuts=cuts)
    assert str(error.value).startswith(message)


def test_modules_cannot_be_chosen_for_slices_that_are_not():
    with pytest.raises(SituateError, match="--recompute auto: needs a number of slices"):
        StepOptions(cut=SliceOptions("auto"), recompute="auto")


@pytest.mark.parametrize(
    "options", [{"slices": "auto"}, {"slices": "2", "sums": "auto"}, {"once": ["auto"]}]
)
def test_without_a_cluster_nothing_is_chosen(options):
    with pytest.raises(SituateError, match="'plan', 'compare' and 'explain' choose for a cluster"):
        FixedSliceOptions(**options)
    assert FixedStepOptions(cut=FixedSliceOptions("2")).capture().slices == Slices((1, 1))


def test_a_size_has_its_dimension():
    assert parse_dims(["batch=8", "x.0=2", "batch=8"]) == {"batch": 8, "x.0": 2}
    assert parse_dims(None) == {}
    for text in ("batch", "=8", "batch=0", "batch=-1", f"batch={2**60}"):
        with pytest.raises(SituateError, match="must be NAME=SIZE"):
            parse_dims([text])


def test_the_model_is_not_read_for_a_bad_option(situate, tmp_path):
    Path("m.json").write_text("{")
    run = situate("info", "m.json", "--optimizer", "sdg")
    assert (run.status, run.err) == (2, "error: unknown optimizer 'sdg'; did you mean 'sgd'?\n")


# Planning chooses cuts for one way of slicing and recomputing.
@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"cut": SliceOptions(slices="auto")}, "--slices a number"),
        ({"recompute": "auto"}, "--recompute names of modules, or all"),
        ({"cut": SliceOptions(slices="2", sums="auto")}, "--sums chain or tree"),
    ],
)
def test_one_choice_is_made_at_a_time(options, remedy) -> None:
    with pytest.raises(SituateError, match=f"give {remedy}, or name the cuts"):
        StepOptions(cuts=["auto"], **options)


def test_a_command_without_a_cluster_has_cuts_by_name_alone() -> None:
    assert FixedStepOptions(cuts=["heads=2"]).capture().cuts == parse_cuts(["heads=2"])
    with pytest.raises(SituateError, match="--cuts auto: 'plan', 'compare' and 'explain' choose"):
        FixedStepOptions(cuts=["auto"])
