"""Contents of Python's containers, also of subclasses that read and write entries in their own way,
such as a dict whose `[]` creates objects."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Any

KINDS: tuple[type, ...] = (OrderedDict, dict, list, set, deque, tuple)
"""Classes of containers, each before its base classes."""


def entries(container: Any) -> dict[Any, Any] | list[Any]:
    """A copy of a container's contents: by key, or in order."""
    if isinstance(container, dict):
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
