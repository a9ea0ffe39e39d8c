"""Names become unique and those that were unique stay as they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from situate.readers.names import unique


def test_repeated_names_get_a_number():
    assert unique(["a", "b", "a", "a"]) == ["a", "b", "a#2", "a#3"]


def test_a_number_never_takes_a_name_that_is_there():
    assert unique(["a", "a", "a#2", "a#2"]) == ["a", "a#3", "a#2", "a#2#2"]


@given(st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "a#2#2", ""])))
def test_names_are_always_unique(names):
    assert len(set(unique(names))) == len(names)
