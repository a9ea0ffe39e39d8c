"""A place of workers is one word."""

from __future__ import annotations

import pytest

from situate.errors import SituateError
from situate.evaluators.workers.places import Place


# All forms of the word, and words that are refused.
@pytest.mark.parametrize(
    ("text", "place"),
    [
        (4, Place(4)),
        ("4", Place(4)),
        ("ray", Place(None, ray=True)),
        ("ray:3", Place(3, ray=True)),
        ("ray://node:10001", Place(None, ray=True, address="ray://node:10001")),
    ],
)
def test_places_are_parsed(text: int | str, place: Place) -> None:
    assert Place.parse(text) == place


@pytest.mark.parametrize(
    "text", [0, -1, 5000, "", ":3", "ray3", "ray:", "ray:0", "ray://", "ray://node", "two", "٣"]
)
def test_other_words_are_refused(text: int | str) -> None:
    with pytest.raises(SituateError, match=r"workers: must be a number from 1 to 4,096, ray, ray:"):
        Place.parse(text)
