"""Slices of a batch as a user writes them."""

from __future__ import annotations

import pytest

from situate.data.slices import AutoSlices, Slices, parse, parse_auto
from situate.errors import SituateError


# Shares of a batch and the samples of each.
@pytest.mark.parametrize(
    ("text", "batch", "samples"),
    [
        ("4", 32, (8, 8, 8, 8)),
        ("3:1", 32, (24, 8)),
        ("20:12", 32, (20, 12)),
        ("2", 2, (1, 1)),
    ],
)
def test_a_batch_is_cut_in_the_shares_that_are_asked_for(text, batch, samples):
    assert parse(text).samples(batch) == samples


def test_equal_slices_are_written_as_their_number():
    assert str(parse("4")) == "4"
    assert str(parse("3:1")) == "3:1"


def test_inputs_may_be_cut_elsewhere_or_not_at_all():
    assert parse("2", ["mask=1", "0['a=b']=2", "table=whole"]).axes == {
        "mask": 1,
        "0['a=b']": 2,
        "table": None,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1", "slices: give 2 to 4,096 of them, got 1"),
        ("99999", "slices: give 2 to 4,096 of them, got 4097"),
        ("3:0", "slices 3:0: every share must be positive"),
        ("3:-1", "slices '3:-1': must be a number of equal slices, such as 4, or shares"),
        ("", "slices '': must be a number of equal slices"),
        ("half", "slices 'half': must be a number"),
    ],
)
def test_what_stands_for_no_slices_is_refused(text, message):
    with pytest.raises(SituateError) as error:
        parse(text)
    assert str(error.value).startswith(message)


def test_more_slices_than_samples_are_refused():
    with pytest.raises(SituateError, match=r"^slices 4: more than the 3 samples .* at most 3$"):
        parse("4").samples(3)


@pytest.mark.parametrize(
    ("text", "batch", "instead"),
    [("4", 30, "7:8:8:7"), ("3:1", 30, "22:8"), ("100:1:1", 5, "3:1:1")],
)
def test_shares_that_do_not_add_up_are_refused_with_some_that_do(text, batch, instead):
    with pytest.raises(SituateError, match=f"add up to {batch}, such as {instead}$"):
        parse(text).samples(batch)
    assert sum(parse(instead).samples(batch)) == batch


# Axes, losses, orders of sums and batch norms are checked words.
@pytest.mark.parametrize("text", ["mask", "=1", "mask=-1", "mask=one", "mask="])
def test_a_dimension_needs_an_input_and_a_number(text):
    with pytest.raises(SituateError, match=r"must be INPUT=AXIS, such as mask=1, or INPUT=whole$"):
        parse("2", [text])


def test_a_loss_is_a_mean_or_a_sum():
    assert parse("2", loss="sum").loss == "sum"
    with pytest.raises(SituateError, match="must be a mean or a sum over samples, got 'median'"):
        parse("2", loss="median")


def test_gradients_are_added_up_in_a_chain_or_in_a_tree():
    assert parse("2").sums == parse("2", sums="chain").sums == "chain"
    cut = parse("4", replicas="2", sums="tree")
    assert str(cut) == "4, replicas 2, sums in a tree"
    assert parse_auto(sums="tree").of((3, 1)) == parse("3:1", sums="tree")
    with pytest.raises(SituateError, match="got 'star': give chain, tree or auto"):
        parse("2", sums="star")
    with pytest.raises(SituateError, match="got 'star': give chain, tree or auto"):
        AutoSlices(sums="star")  # type: ignore[arg-type]
    with pytest.raises(SituateError, match="chosen for one cut of the batch"):
        AutoSlices(sums="auto")


def test_batch_norms_are_over_a_slice_or_over_the_batch():
    assert parse("2").batch_norm == parse("2", batch_norm="slice").batch_norm == "slice"
    cut = parse("4", replicas="2", batch_norm="batch")
    assert str(cut) == "4, replicas 2, batch norms over the batch"
    assert parse_auto(batch_norm="batch").of((3, 1)) == parse("3:1", batch_norm="batch")
    with pytest.raises(SituateError, match=r"got 'all': give slice or batch$"):
        parse("2", batch_norm="all")
    with pytest.raises(SituateError, match=r"got 'all': give slice or batch$"):
        AutoSlices(batch_norm="all")  # type: ignore[arg-type]


def test_a_loss_that_is_a_word_of_no_kind_is_refused_from_python_too():
    with pytest.raises(SituateError, match="must be a mean or a sum over samples, got 'median'"):
        Slices((1, 1), loss="median")  # type: ignore[arg-type]


def test_shares_that_are_numbers_are_checked_too():
    with pytest.raises(SituateError, match="every share must be positive"):
        Slices((2, 0))


# Replicas, and the parameters that exist once beside them.
@pytest.mark.parametrize(
    ("slices", "replicas", "replica"),
    [
        ("4", "2", (0, 1, 0, 1)),
        ("3:1", "2", (0, 1)),
        ("6", "4:2", (0, 1, 0, 0, 1, 0)),
        ("5", "1:4", (0, 1, 1, 1, 1)),
        ("4", None, (0, 0, 0, 0)),
    ],
)
def test_replicas_are_read_in_turns(slices, replicas, replica):
    assert parse(slices, replicas=replicas).replica == replica


def test_slices_say_their_replicas():
    assert str(parse("4", replicas="2")) == "4, replicas 2"
    cut = parse("4", replicas="3:1", once=["a", "b*"])
    assert str(cut) == "4, replicas 3:1, parameters there once 2"
    assert cut.once == ("a", "b*")


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        ("5", "replicas: give at least 2, and no more than the 4 slices, got 5"),
        ("1", "replicas: give at least 2, and no more than the 4 slices, got 1"),
        ("0", "replicas: give at least 2, and no more than the 4 slices, got 0"),
        ("3", "replicas 3: 4 slices are no multiple of it: say how many read each, such as 1:2:1"),
        ("3:2", "replicas 3:2: give the slices that read each, at least one, which add up to 4"),
        ("4:0", "replicas 4:0: give the slices that read each, at least one, which add up to 4"),
        ("1:1:1:1:1", "replicas: give at least 2, and no more than the 4 slices, got 5"),
        ("two", "replicas 'two': must be a number of them, such as 2, or the slices that read"),
    ],
)
def test_what_stands_for_no_replicas_is_refused(replicas, message):
    with pytest.raises(SituateError) as error:
        parse("4", replicas=replicas)
    assert str(error.value).startswith(message)


def test_parameters_are_there_once_beside_replicas_only():
    with pytest.raises(SituateError, match="without replicas every parameter is there once"):
        parse("4", once=["a"])
