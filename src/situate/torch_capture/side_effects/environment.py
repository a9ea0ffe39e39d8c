"""Python objects that a step can reach and change: contents of closures, globals, attributes and
containers."""

from __future__ import annotations

import argparse
import copy
import functools
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from situate.torch_capture.side_effects.places import (
    MISSING,
    Place,
    cell_content,
    class_attributes,
    entries,
    own_attributes,
    refill,
    set_array,
    set_cell,
    set_class_attributes,
    set_variable,
    values,
)
from situate.torch_capture.side_effects.storages import tensors_in

if TYPE_CHECKING:
    import torch

LARGEST = 100_000
"""The most entries of a container that are searched, and objects that are reached from a root."""

FOREIGN = sys.stdlib_module_names | {"torch", "numpy", "situate", "transformers", "torchvision"}
"""Packages whose own globals and classes hold no state of a user's step."""


class Environment:
    """All objects reachable from some roots, and their initial contents.

    Args:
        roots: by the name with which the names of their contents begin.
    """

    def __init__(self, **roots: object) -> None:
        walk = _Walk()
        for name, root in roots.items():
            walk.visit(root, name)
        self._before = [(place, place.load()) for place in walk.places]

    def changed(self) -> dict[str, tuple[Any, Any]]:
        """By name of a variable, container or attribute (`model.layer.count`), the initial content
        and the current one."""
        changes: dict[str, tuple[Any, Any]] = {}
        for place, before in self._before:
            after = place.load()
            if place.attributes:
                names = [*before, *(after.keys() - before.keys())]
                parts = {n: (before.get(n, MISSING), after.get(n, MISSING)) for n in names}
                changes |= {f"{place.name}.{n}": p for n, p in parts.items() if not same(*p)}
            elif not same(before, after):
                changes[place.name] = before, after
        return changes

    def new_tensors(self) -> dict[str, list[torch.Tensor]]:
        """The tensors that have appeared since the beginning, by place."""
        by_place = {}
        for place, (before, after) in self.changed().items():
            old = {id(tensor) for tensor in tensors_in(before)}
            by_place[place] = [tensor for tensor in tensors_in(after) if id(tensor) not in old]
        return {place: tensors for place, tensors in by_place.items() if tensors}

    def restore(self) -> None:
        """Restore the initial contents."""
        for place, before in self._before:
            if not same(before, place.load()):
                place.store(before)


def same(one: Any, other: Any) -> bool:
    """True if two copies hold the same objects, or equal numbers and texts."""
    import numpy as np

    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return bool(one.dtype != object and np.array_equal(one, other))
    return isinstance(one, (bool, int, float, str, bytes)) and one == other


class _Walk:
    """Collects the reachable places, each once."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        # By id, with the object, so that no later object has the id of a freed one.
        self._visited: dict[int, object] = {}
        self._pending: list[tuple[object, str]] = []

    def visit(self, root: object, name: str) -> None:
        # An explicit stack: the graph of objects is deeper than Python's recursion limit.
        self._pending = [(root, name)]
        most = len(self._visited) + LARGEST
        while self._pending and len(self._visited) < most:
            value, name = self._pending.pop()
            if self._is_new(value):
                self._look(value, name)

    def _is_new(self, value: object) -> bool:
        if (
            value is None
            or isinstance(value, (int, float, str, bytes))
            or id(value) in self._visited
        ):
            return False
        # The value stays alive here, so that no later object gets its id.
        self._visited[id(value)] = value
        return True

    def _look(self, value: Any, name: str) -> None:
        if isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, functools._lru_cache_wrapper):
            # A cached result of a fake tensor would leak into the next trace.
            self._watch(name, value.cache_info, lambda _: value.cache_clear())
            self._pending.append((value.__wrapped__, name))
        elif isinstance(value, MethodType):
            self._follow((value.__self__, value.__func__), name)
        elif isinstance(value, partial):
            self._follow((value.func, *value.args, *value.keywords.values()), name)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, (dict, list, set, deque, tuple)):
            self._container(value, name)
        elif not self._numbers(value, name):
            self._object(value, name)

    def _follow(self, values: Iterable[object], name: str) -> None:
        self._pending += [(value, name) for value in values]

    def _watch(
        self,
        name: str,
        load: Callable[[], Any],
        store: Callable[[Any], None],
        attributes: bool = False,
    ) -> None:
        self.places.append(Place(name, load, store, attributes))

    def _container(self, value: Any, name: str) -> None:
        if len(value) > LARGEST:
            return
        if not isinstance(value, tuple):
            self._watch(name, partial(entries, value), partial(refill, value))
        self._follow(values(value), name)

    def _function(self, function: FunctionType) -> None:
        foreign = _is_foreign(function.__globals__.get("__name__", ""))
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            if not foreign and self._is_new(cell):
                self._watch(name, partial(cell_content, cell), partial(set_cell, cell))
            self._pending.append((cell_content(cell), name))
        if not foreign:
            self._follow(function.__defaults__ or (), function.__name__)
            for name in _names(function.__code__):
                self._variable(function.__globals__, name)

    def _variable(self, space: dict[str, Any], name: str) -> None:
        """Watch a global variable; if it is a module of the user's, all variables in it."""
        value = space.get(name, MISSING)
        if isinstance(value, ModuleType):
            if not _is_foreign(value.__name__) and self._is_new(value):
                for variable in [name for name in vars(value) if not name.startswith("__")]:
                    self._variable(vars(value), variable)
            return
        self._watch(name, partial(space.get, name, MISSING), partial(set_variable, space, name))
        self._pending.append((value, name))

    def _class(self, kind: type) -> None:
        if _is_foreign(kind.__module__):
            return
        load, store = partial(class_attributes, kind), partial(set_class_attributes, kind)
        self._watch(kind.__name__, load, store, attributes=True)
        for value in vars(kind).values():
            self._pending.append((_function(value), kind.__name__))
        self._follow(kind.__bases__, kind.__name__)

    def _numbers(self, value: Any, name: str) -> bool:
        """Watch an array of NumPy, or a generator of random numbers; False for other values."""
        import numpy as np

        if isinstance(value, np.ndarray) and value.dtype != object and value.size < 10 * LARGEST:
            self._watch(name, value.tobytes, partial(set_array, value))
        elif isinstance(value, random.Random):
            self._watch(name, value.getstate, value.setstate)
        elif isinstance(value, np.random.Generator):
            bits = value.bit_generator
            self._watch(name, lambda: copy.deepcopy(bits.state), partial(setattr, bits, "state"))
        elif isinstance(value, np.random.RandomState):
            self._watch(name, value.get_state, value.set_state)
        else:
            # Other arrays, too large or of objects, are not searched as objects either.
            return isinstance(value, np.ndarray)
        return True

    def _object(self, value: Any, name: str) -> None:
        """Watch an instance of a user's class, a module of PyTorch, or a namespace."""
        import torch

        attributes = own_attributes(value)
        if isinstance(value, torch.Tensor) or attributes is None:
            return
        is_namespace = isinstance(value, (torch.nn.Module, SimpleNamespace, argparse.Namespace))
        if not is_namespace and _is_foreign(type(value).__module__):
            return
        self._watch(
            name, partial(entries, attributes), partial(refill, attributes), attributes=True
        )
        self._pending.append((type(value), name))
        for key, content in attributes.items():
            # Modules are named as the program names them, without `_modules` in between.
            inner = isinstance(value, torch.nn.Module) and key == "_modules"
            if inner:
                self._watch(name, partial(entries, content), partial(refill, content))
            parts = content if inner else {key: content}
            self._pending += [(part, f"{name}.{label}") for label, part in parts.items()]


def _function(value: Any) -> Any:
    """The function behind an entry of a class."""
    if isinstance(value, (staticmethod, classmethod)):
        return value.__func__
    return value.fget if isinstance(value, property) else value


def _is_foreign(module: str | None) -> bool:
    return (module or "").partition(".")[0] in FOREIGN


def _names(code: CodeType) -> Iterator[str]:
    """The names that code may use as global variables, also in functions inside it."""
    yield from (name for name in code.co_names if not name.startswith("__"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
