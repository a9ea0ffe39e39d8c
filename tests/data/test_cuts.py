"""Cuts of ops, from their text."""

from __future__ import annotations

import pytest

from situate.data.cuts import Cut, CutParameter, Cuts, parse_cuts
from situate.errors import SituateError


# The two forms of a cut, and the text that both give.
@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("heads=4", Cut("heads", (1, 1, 1, 1))),
        ("layers.*.mlp:2", Cut("layers.*.mlp", (1, 1))),
        ("features=3:1", Cut("features", (3, 1))),
    ],
)
def test_a_cut_is_read_from_its_text(text, cut) -> None:
    assert parse_cuts([text]).cuts == (cut,)
    assert parse_cuts([str(cut)]).cuts == (cut,)


def test_an_order_of_sums_that_is_no_chain_is_in_the_text() -> None:
    assert (
        str(parse_cuts(["heads=4", "features=4"], "tree")) == "heads=4, features=4, sums in a tree"
    )


def test_bounds_are_in_proportion_to_the_shares() -> None:
    assert Cut("features", (3, 1)).bounds(16) == (0, 12, 16)
    assert Cut("features", (3, 1)).bounds(6) is None


@pytest.mark.parametrize(
    ("shares", "units", "bounds"),
    [
        ((1, 1), 50257, (0, 25129, 50257)),
        ((1, 1, 1), 50, (0, 17, 33, 50)),
        ((1, 1, 1), 47, None),
        ((3, 1), 65, (0, 49, 65)),
    ],
)
def test_many_units_are_divided_to_the_nearest_unit(shares, units, bounds) -> None:
    assert Cut("vocabulary", shares).bounds(units) == bounds


def test_auto_stands_alone() -> None:
    assert parse_cuts(["auto"]).is_auto
    assert not parse_cuts(["heads=2"]).is_auto
    with pytest.raises(SituateError, match="auto stands alone"):
        parse_cuts(["auto", "heads=2"])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["heads"], "'heads': must be NAME=PARTS"),
        (["heads=two"], "must be NAME=PARTS"),
        (["=2"], "a name is empty"),
        (["heads=1"], "give 2 to 512 parts, got 1"),
        (["heads=99999"], "give 2 to 512 parts, got 99,999"),
        (["heads=1:0"], "every share must be positive"),
        (["heads=2", "heads=4"], "'heads' is cut twice"),
    ],
)
def test_texts_that_are_no_cuts_are_refused(texts, message) -> None:
    with pytest.raises(SituateError, match=message):
        parse_cuts(texts)


def test_cuts_need_a_cut_and_an_order_of_sums() -> None:
    with pytest.raises(SituateError, match="none: give at least one"):
        Cuts(())
    with pytest.raises(SituateError, match="in a chain or in a tree"):
        parse_cuts(["heads=2"], "ring")


# A cut parameter has parts in order, none of them empty.
def test_the_parts_of_a_parameter_lie_between_its_bounds() -> None:
    assert CutParameter("up.weight", "features", 0, (0, 8, 12, 16)).parts == 3


@pytest.mark.parametrize("bounds", [(), (0, 8), (1, 8, 16), (0, 8, 8), (0, 8, 4)])
def test_bounds_that_do_not_rise_are_refused(bounds) -> None:
    with pytest.raises(SituateError, match=r"'up\.weight': bounds must rise from 0 over two parts"):
        CutParameter("up.weight", "features", 0, bounds)


@pytest.mark.parametrize(("dim", "ranges"), [(-1, 1), (0, 0)])
def test_dimensions_and_ranges_that_do_not_exist_are_refused(dim, ranges) -> None:
    with pytest.raises(SituateError, match="give a dimension from 0 and at least one range"):
        CutParameter("up.weight", "features", dim, (0, 1, 2), ranges)
