"""Objects that a function reaches are found by name, and are as they were in the end."""

from __future__ import annotations

import functools
import random
from collections import defaultdict, deque
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.torch_capture.side_effects.environment import Environment, same  # noqa: E402
from situate.torch_capture.side_effects.places import MISSING  # noqa: E402

VARIABLE = 1


# All places that a step can reach are compared and restored.
class Owner:
    """Counts its own calls, and the calls of all instances."""

    calls = 0

    def __init__(self) -> None:
        self.count, self.inner = 0, {"list": [1]}

    def count_call(self) -> None:
        Owner.calls += 1
        self.count += 1
        self.inner["list"].append(2)


def test_variables_containers_and_attributes_are_found_and_restored() -> None:
    listed, keyed, ends, unique = [1], defaultdict(list), deque([1], maxlen=2), {1}
    space, owner, cell = SimpleNamespace(value=1), Owner(), 5

    def change(extra: list[int], *, by_name: dict[str, int]) -> None:
        global VARIABLE, NEW
        nonlocal cell
        VARIABLE, NEW, cell = 2, 3, 6  # type: ignore[name-defined]
        listed.append(2)
        keyed["a"].append(1)
        ends.extend((2, 3))
        unique.add(2)
        space.value, space.other = 2, 3
        owner.count_call()
        extra.append(1)
        by_name["x"] = 1

    extra: list[int] = []
    by_name: dict[str, int] = {}
    call = partial(change, extra, by_name=by_name)
    environment = Environment(loss=call)
    assert environment.changed() == {}
    call()
    changed = environment.changed()
    assert {"VARIABLE", "NEW", "cell", "listed", "keyed", "ends", "unique"} <= changed.keys()
    assert {"space.value", "space.other", "owner.count", "owner.inner", "Owner.calls"} <= set(
        changed
    )
    assert changed["VARIABLE"] == (1, 2)
    assert changed["NEW"] == (MISSING, 3)
    environment.restore()
    assert environment.changed() == {}
    assert (VARIABLE, "NEW" in globals(), cell, listed, keyed) == (1, False, 5, [1], {})
    assert (list(ends), unique, vars(space), Owner.calls) == ([1], {1}, {"value": 1}, 0)
    assert (owner.count, owner.inner, extra, by_name) == (0, {"list": [1]}, [], {})


def test_arrays_and_generators_of_random_numbers_are_restored() -> None:
    array, one, other = np.zeros(3), random.Random(1), np.random.default_rng(1)
    old = np.random.RandomState(1)

    def draw() -> tuple[float, ...]:
        array[0] += 1
        return one.random(), other.random(), float(old.rand())

    environment = Environment(loss=draw)
    numbers = draw()
    assert {"array", "one", "other", "old"} <= environment.changed().keys()
    environment.restore()
    assert array.tolist() == [0, 0, 0]
    assert draw() == numbers


@functools.lru_cache
def squared(number: int) -> int:
    return number**2


def test_caches_of_functions_are_emptied_where_they_were_filled() -> None:
    environment = Environment(loss=lambda: squared(3))
    squared(3)
    assert "squared" in environment.changed()
    environment.restore()
    assert squared.cache_info().currsize == 0


def test_properties_are_looked_into() -> None:
    log: list[int] = []

    class Logging:
        @property
        def logged(self) -> int:
            log.append(1)
            return len(log)

    owner = Logging()
    environment = Environment(loss=lambda: owner)
    assert owner.logged
    assert "log" in environment.changed()


def test_modules_are_named_by_their_path() -> None:
    model: Any = nn.Sequential(nn.Linear(2, 2))
    environment = Environment(model=model)
    model[0].history = [1]
    model[0].register_forward_hook(print)
    assert {"model.0.history", "model.0._forward_hooks"} <= environment.changed().keys()
    environment.restore()
    assert not hasattr(model[0], "history")
    assert not model[0]._forward_hooks


def test_what_reaches_itself_is_looked_at_once() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert Environment(loss=lambda: circle).changed() == {}


# Contents are compared by identity, except plain numbers and texts.
@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1000, 10**3, True),
        (1, 1.0, False),
        ([1, "a"], [1, "a"], True),
        ({"a": 1}, {"b": 1}, False),
        (np.ones(2), np.ones(2), True),
        (object(), object(), False),
    ],
)
def test_numbers_and_texts_are_compared_and_objects_are_told_apart(
    one: object, other: object, equal: bool
) -> None:
    assert same(one, other) is equal


def test_tensors_that_are_new_are_told() -> None:
    old, new, contents = torch.ones(1), torch.zeros(1), {}
    listed = [old]

    def loss() -> None:
        listed.append(new)
        contents["count"] = 1

    environment = Environment(loss=loss)
    loss()
    assert {
        place: list(map(id, tensors)) for place, tensors in environment.new_tensors().items()
    } == {"listed": [id(new)]}


class Shy:
    """An object without attributes of its own that raises when it is asked for one."""

    __slots__ = ()

    def __getattr__(self, name: str) -> None:
        raise RuntimeError(name)


def test_objects_are_not_asked_for_attributes_that_they_do_not_have() -> None:
    class Holder:
        shy = Shy()

    contents = Shy(), Holder()

    def step() -> object:
        return contents

    environment = Environment(step=step)
    assert environment.changed() == {}
