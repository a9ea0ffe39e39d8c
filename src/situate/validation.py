"""Validation of arguments against their declared types: one line names the fault."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from situate.errors import SituateError

Where = Callable[[int], str]
"""From the index of an item to the beginning of an error about it."""


class Kind(NamedTuple):
    """The values that a declared type accepts, and its name in messages."""

    types: tuple[type, ...]
    name: str


KINDS: dict[Any, Kind] = {
    bool: Kind((bool, np.bool_), "True or False"),
    int: Kind((Integral,), "an integer"),
    float: Kind((Real,), "a number"),
    str: Kind((str,), "a string"),
    tuple: Kind((tuple, list), "a tuple"),
    dict: Kind((Mapping,), "a dict"),
    Path: Kind((Path,), "a path"),
    NoneType: Kind((NoneType,), "None"),
    Callable: Kind((Callable,), "a function"),  # type: ignore[arg-type]
}
"""numpy's numbers are as good as Python's own, and lists as good as tuples."""

REMEDIES = {
    "Cluster": "situate.Cluster.find finds one by its name or file",
    "Costs": "situate.Costs.read reads a file of them",
    "Graph": "situate.find_model finds one by its name or file",
    "Plan": "situate.Plan.read reads one",
    "Problem": "situate.Problem(graph, cluster) is one",
}


def check(
    given: object, declared: Any, what: str, error: type[SituateError] = SituateError
) -> None:
    """
    Raises:
        SituateError: it is nothing of the declared type; the line begins with `what`.
    """
    _check_types([given], _kind(declared), lambda _: what, error)


def check_items(
    items: Sequence[Any],
    declared: type,
    where: Where,
    error: type[SituateError] = SituateError,
    but: Collection[str] = (),
) -> None:
    """
    Args:
        but: fields that are left to other checks.

    Raises:
        SituateError: an item is no `declared`, or something else than is declared stands in a field
            of one; the line begins with `where` of its index.
    """
    _check_types(items, _kind(declared), where, error)
    for name, kind in _fields(declared).items():
        if name not in but:
            values = [getattr(item, name) for item in items]
            _check_types(values, kind, lambda i: f"{where(i)}: {name}", error)  # noqa: B023


def check_parts(
    parts: Sequence[Sequence[Any]],
    declared: Any,
    where: Where,
    error: type[SituateError] = SituateError,
) -> None:
    """As `check_items`, of each of the collections `parts`."""
    whole = _kind(declared)
    if not _wrong(chain.from_iterable(parts), whole):
        return
    for i, part in enumerate(parts):
        _check_types(part, whole, lambda _: where(i), error)  # noqa: B023


def _check_types(
    values: Sequence[Any], kind: Kind, where: Where, error: type[SituateError]
) -> None:
    wrong = _wrong(values, kind)
    if wrong:
        i, value = next((i, value) for i, value in enumerate(values) if type(value) in wrong)
        raise error(f"{where(i)}: must be {kind.name}, got {_shown(value)}{_remedy(kind)}")


def _wrong(values: Iterable[Any], kind: Kind) -> set[type]:
    """A graph has hundreds of thousands of values, of few types."""
    return {found for found in set(map(type, values)) if not issubclass(found, kind.types)}


@cache
def _fields(declared: type) -> dict[str, Kind]:
    """But for those of a few names, which are refused with the nearest."""
    hints = get_type_hints(declared).items()
    return {name: _kind(hint) for name, hint in hints if not _is_of_names(hint)}


def _is_of_names(hint: Any) -> bool:
    return Literal in (get_origin(hint), *map(get_origin, get_args(hint)))


def _kind(hint: Any) -> Kind:
    origin = get_origin(hint) or hint
    if origin in (Union, UnionType):
        kinds = [_kind(part) for part in get_args(hint)]
        types = tuple(chain.from_iterable(kind.types for kind in kinds))
        return Kind(types, " or ".join(kind.name for kind in kinds))
    return KINDS.get(origin) or Kind((origin,), f"a situate.{origin.__name__}")


def _shown(value: object) -> str:
    if isinstance(value, str | bytes | Real | NoneType):
        return repr(value)[:80]
    return f"an object of type {type(value).__name__!r}"


def _remedy(kind: Kind) -> str:
    return next((f"; {REMEDIES[t.__name__]}" for t in kind.types if t.__name__ in REMEDIES), "")
