"""Data for a page."""

from __future__ import annotations

import numpy as np
import pytest

from situate.report.view.block import Texts, encoded, smallest
from tests.report.handmade import HOSTILE
from tests.report.view.unpack import decoded


# Content comes back as it was.
def test_arrays_come_back_at_any_length() -> None:
    for count in (0, 1, 7, 8, 100):
        content = {"a": np.arange(count) / 7, "b": [np.arange(count, dtype=np.uint16)], "c": "x"}
        back = decoded(encoded(content))
        assert np.array_equal(back["a"], content["a"])
        assert np.array_equal(back["b"][0], content["b"][0])
        assert back["c"] == "x"


def test_scalars_and_missing_values_come_back() -> None:
    content = {"none": None, "yes": True, "number": 1.5, "list": [1, "two"]}
    assert decoded(encoded(content)) == content


def test_integers_of_either_sign_come_back() -> None:
    content = [np.array([-1, 5]), np.array([0, 70_000]), np.array([True, False])]
    back = decoded(encoded(content))
    assert [array.tolist() for array in back] == [[-1, 5], [0, 70_000], [1, 0]]


def test_texts_come_back_line_by_line() -> None:
    assert decoded(encoded(Texts(["a", "", "ü"]))) == ["a", "", "ü"]
    assert decoded(encoded(Texts([]))) == []


def test_control_characters_in_texts_are_escaped() -> None:
    lines = decoded(encoded({"t": Texts(HOSTILE), "s": [*HOSTILE]}))
    assert lines["t"] == lines["s"]
    assert len(lines["t"]) == len(HOSTILE)
    assert "two\\nlines" in lines["t"]
    assert not any("\u202e" in line for line in lines["t"])


# The block cannot end its element.
def test_an_encoded_block_has_letters_and_digits_alone() -> None:
    assert set(encoded([*HOSTILE])) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
    )


@pytest.mark.parametrize(("largest", "kind"), [(255, "u1"), (256, "u2"), (65_536, "u4")])
def test_the_narrowest_type_that_holds_all_values_is_used(largest: int, kind: str) -> None:
    assert smallest(np.array([0, largest])).dtype == np.dtype(kind)
