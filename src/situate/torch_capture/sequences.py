"""Tuples, lists and NumPy's arrays without tensors among the inputs of a step, such as lengths of
the sequences of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Keys = tuple[str | int, ...]
"""The way from the inputs to one of them."""


def sequences(inputs: Any) -> dict[str, Sequence[Any]]:
    """By name, as `trees.names` names what is in them, the outermost sequences that hold no
    tensor."""
    return {_name(keys): value for keys, value in _found(inputs, ())}


def replaced(inputs: Any, changes: Mapping[str, Sequence[Any]]) -> Any:
    """The inputs with other sequences of these names."""
    return _replaced(inputs, (), changes)


def _found(value: Any, keys: Keys) -> Iterator[tuple[Keys, Sequence[Any]]]:
    if keys and _is_sequence(value):
        yield keys, value
        return
    for key, each in _entries(value):
        yield from _found(each, (*keys, key))


def _is_sequence(value: Any) -> bool:
    """True for a sequence that may be cut: of the plain types, not empty, without a tensor."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0 and len(value) > 0
    return type(value) in (tuple, list) and len(value) > 0 and not _holds_tensor(value)


def _holds_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) or any(_holds_tensor(e) for _, e in _entries(value))


def _entries(value: Any) -> Iterator[tuple[str | int, Any]]:
    if type(value) is dict:
        yield from value.items()
    elif type(value) in (tuple, list):
        yield from enumerate(value)


def _replaced(value: Any, keys: Keys, changes: Mapping[str, Sequence[Any]]) -> Any:
    if keys and _name(keys) in changes:
        return changes[_name(keys)]
    if type(value) is dict:
        return {key: _replaced(each, (*keys, key), changes) for key, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_replaced(each, (*keys, i), changes) for i, each in enumerate(value))
    return value


def _name(keys: Keys) -> str:
    """Such as `2`, `frames` or `0['frames']`."""
    return str(keys[0]) + "".join(f"[{key!r}]" for key in keys[1:])
