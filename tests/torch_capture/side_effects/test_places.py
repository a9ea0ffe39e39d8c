"""Entries of containers are read and put back as Python's own classes do."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any

import pytest

from situate.torch_capture.side_effects.places import entries, refill, values


class Making(OrderedDict[str, Any]):
    """Hands out an object of the class that it holds, as the activations of transformers do."""

    def __getitem__(self, key: str) -> Any:
        raise AssertionError("an entry was made")

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self.was_written = True


class Counting(dict[str, int]):
    """Knows any key, and has keys that it does not hold."""

    def keys(self) -> Any:
        raise AssertionError("keys were asked for")

    def __iter__(self) -> Any:
        raise AssertionError("keys were asked for")


class Doubled(list[int]):
    """Each entry comes twice."""

    def __iter__(self) -> Any:
        return iter([*list.__iter__(self), *list.__iter__(self)])


# Entries are read and written past the methods of a subclass.
@pytest.mark.parametrize(
    ("container", "contents"),
    [
        (Making([("a", int), ("b", str)]), {"a": int, "b": str}),
        (Counting(a=1), {"a": 1}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        (Doubled([1, 2]), [1, 2]),
        ({3}, [3]),
        (deque([1, 2], maxlen=2), [1, 2]),
        ((1, 2), [1, 2]),
    ],
)
def test_entries_are_those_that_are_held(container: Any, contents: Any) -> None:
    assert entries(container) == contents
    assert list(values(container)) == (
        list(contents.values()) if isinstance(contents, dict) else contents
    )


@pytest.mark.parametrize(
    "container",
    [
        Making([("a", int), ("b", str)]),
        Counting(a=1),
        defaultdict(list, a=[1]),
        Doubled([1, 2]),
        {3},
        deque([1, 2], maxlen=2),
    ],
)
def test_a_container_is_refilled(container: Any) -> None:
    contents = entries(container)
    container.clear()
    assert not entries(container)
    refill(container, contents)
    assert entries(container) == contents


def test_what_reads_entries_in_its_own_way_is_not_told_of_it() -> None:
    container = Making(a=int)
    vars(container).clear()
    refill(container, entries(container))
    assert vars(container) == {}
