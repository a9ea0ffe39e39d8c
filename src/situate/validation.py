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
"""The values of each annotation: numpy's numbers count as Python's, and lists as tuples."""

REMEDIES = {
    "Cluster": "situate.Cluster.find finds one by its name or file",
    "Costs": "situate.Costs.read reads a file of them",
    "Graph": "situate.find_model finds one by its name or file",
    "Plan": "situate.Plan.read reads one",
    "Problem": "situate.Problem(graph, cluster) is one",
}


def check(
    value: object, annotation: Any, noun: str, error: type[SituateError] = SituateError
) -> None:
    """
    Raises:
        SituateError: the value is not of the annotated type; the line begins with `noun`.
    """
    _check_types([value], _kind(annotation), lambda _: noun, error)


def check_items(
    items: Sequence[Any],
    item_type: type,
    where: Where,
    error: type[SituateError] = SituateError,
    but: Collection[str] = (),
) -> None:
    """
    Args:
        but: fields that have other checks.

    Raises:
        SituateError: an item is not of the type, or one of its fields is not of the annotated type;
            the line begins with `where` of its index.
    """
    _check_types(items, _kind(item_type), where, error)
    for name, kind in _fields(item_type).items():
        if name not in but:
            values = [getattr(item, name) for item in items]
            _check_types(values, kind, lambda i: f"{where(i)}: {name}", error)  # noqa: B023


def check_parts(
    parts: Sequence[Sequence[Any]],
    annotation: Any,
    where: Where,
    error: type[SituateError] = SituateError,
) -> None:
    """Check the types of the elements of several collections; errors are as of `check_items`."""
    kind = _kind(annotation)
    # One pass over all types first, because nearly all graphs are valid.
    if not _wrong_types(chain.from_iterable(parts), kind):
        return
    for i, part in enumerate(parts):
        _check_types(part, kind, lambda _: where(i), error)  # noqa: B023


def _check_types(
    values: Sequence[Any], kind: Kind, where: Where, error: type[SituateError]
) -> None:
    wrong = _wrong_types(values, kind)
    if wrong:
        i, value = next((i, value) for i, value in enumerate(values) if type(value) in wrong)
        raise error(f"{where(i)}: must be {kind.name}, got {_value_text(value)}{_remedy(kind)}")


def _wrong_types(values: Iterable[Any], kind: Kind) -> set[type]:
    """The types of values that the kind does not accept."""
    # A graph has hundreds of thousands of values of few types, so each type is checked once.
    return {
        value_type
        for value_type in set(map(type, values))
        if not issubclass(value_type, kind.types)
    }


@cache
def _fields(item_type: type) -> dict[str, Kind]:
    """The kinds of fields, except for those of literals, whose errors name the nearest literal."""
    hints = get_type_hints(item_type).items()
    return {name: _kind(hint) for name, hint in hints if not _is_literal(hint)}


def _is_literal(hint: Any) -> bool:
    return Literal in (get_origin(hint), *map(get_origin, get_args(hint)))


def _kind(hint: Any) -> Kind:
    origin = get_origin(hint) or hint
    if origin in (Union, UnionType):
        kinds = [_kind(part) for part in get_args(hint)]
        types = tuple(chain.from_iterable(kind.types for kind in kinds))
        return Kind(types, " or ".join(kind.name for kind in kinds))
    return KINDS.get(origin) or Kind((origin,), f"a situate.{origin.__name__}")


def _value_text(value: object) -> str:
    if isinstance(value, str | bytes | Real | NoneType):
        return repr(value)[:80]
    return f"an object of type {type(value).__name__!r}"


def _remedy(kind: Kind) -> str:
    return next((f"; {REMEDIES[t.__name__]}" for t in kind.types if t.__name__ in REMEDIES), "")
