"""Slices of a batch as a user writes them."""

from __future__ import annotations

import pytest

from situate.data.slices import Slices, parse
from situate.errors import SituateError


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


@pytest.mark.parametrize("text", ["mask", "=1", "mask=-1", "mask=one", "mask="])
def test_a_dimension_needs_an_input_and_a_number(text):
    with pytest.raises(SituateError, match=r"must be INPUT=AXIS, such as mask=1, or INPUT=whole$"):
        parse("2", [text])


def test_a_loss_is_a_mean_or_a_sum():
    assert parse("2", loss="sum").loss == "sum"
    with pytest.raises(SituateError, match="must be a mean or a sum over samples, got 'median'"):
        parse("2", loss="median")


def test_shares_that_are_numbers_are_checked_too():
    with pytest.raises(SituateError, match="every share must be positive"):
        Slices((2, 0))
