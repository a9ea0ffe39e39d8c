"""Places that a step may change: contents of containers, variables, attributes and arrays."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import CellType
from typing import Any

KINDS: tuple[type, ...] = (OrderedDict, dict, list, set, deque, tuple)
"""Classes of containers, each before its base classes."""


def entries(container: Any) -> dict[Any, Any] | list[Any]:
    """A copy of a container's contents: by key, or in order."""
    if isinstance(container, dict):
        # Methods of the base class, here and below: those of a subclass may have effects of their
        # own.
        return dict(dict.items(container))
    kind: Any = _kind(container)
    return list(kind.__iter__(container))


def values(container: Any) -> Iterable[Any]:
    """The values in a container, without keys."""
    contents = entries(container)
    return contents.values() if isinstance(contents, dict) else contents


def refill(container: Any, contents: Any) -> None:
    """Replace the contents of a container by those that `entries` returned."""
    kind: Any = _kind(container)
    kind.clear(container)
    if issubclass(kind, dict):
        for key, value in contents.items():
            kind.__setitem__(container, key, value)
    else:
        (kind.update if kind is set else kind.extend)(container, contents)


def _kind(container: object) -> type:
    return next(kind for kind in KINDS if isinstance(container, kind))


MISSING = object()
"""Stands for the value of a variable that has none."""


@dataclass(frozen=True)
class Place:
    """A place that a step may change.

    Attributes:
        name: such as `hist`, a variable, or `model.layer`, an object.
        load: returns a copy of the content.
        store: puts a copy back.
        attributes: the content is an object's attributes, by name.
    """

    name: str
    load: Callable[[], Any]
    store: Callable[[Any], None]
    attributes: bool = False


def own_attributes(value: Any) -> dict[str, Any] | None:
    """The attributes of an object, without a call of its `__getattr__`, which may raise."""
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return attributes if isinstance(attributes, dict) else None


def cell_content(cell: CellType) -> object:
    """The value of a closure's variable, or `MISSING`."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def set_cell(cell: CellType, value: object) -> None:
    """Set or delete a closure's variable."""
    if value is MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def set_variable(space: dict[str, Any], name: str, value: object) -> None:
    """Set or delete a global variable."""
    if value is MISSING:
        del space[name]
    else:
        space[name] = value


def class_attributes(kind: type) -> dict[str, Any]:
    """The attributes of a class without special methods."""
    return {name: value for name, value in vars(kind).items() if not name.startswith("__")}


def set_class_attributes(kind: type, values: Mapping[str, Any]) -> None:
    """Restore the attributes of a class."""
    for name in class_attributes(kind).keys() - values.keys():
        delattr(kind, name)
    for name, value in values.items():
        if vars(kind).get(name, MISSING) is not value:
            setattr(kind, name, value)


def set_array(array: Any, content: bytes) -> None:
    """Restore the numbers of an array."""
    import numpy as np

    array[...] = np.frombuffer(content, array.dtype).reshape(array.shape)
