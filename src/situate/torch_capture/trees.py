"""Nested values as their leaves, and the inputs of a step as the tensors and sequences in them.

`torch.utils._pytree` treats transformers' caches of keys and values as leaves. Here the leaves are
the tensors inside a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from situate.errors import SituateError

if TYPE_CHECKING:
    import torch

CACHES = "transformers.cache_utils"

Keys = tuple[str | int, ...]
"""The keys and indices that lead from the inputs to a value in them."""


@dataclass(frozen=True)
class Structure:
    """The nesting that holds the leaves.

    Attributes:
        outer: PyTorch's structure, in which caches are leaves.
        caches: by position among those leaves, the class of a cache and the structure of its
            attributes.
    """

    outer: Any
    caches: Mapping[int, tuple[type, Structure]]

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The value with these leaves; its caches are new ones."""
        return self._fill(iter(leaves))

    def _fill(self, leaves: Iterator[Any]) -> Any:
        from torch.utils._pytree import tree_unflatten

        places = range(self.outer.num_leaves)
        filled = [self._cache(i, leaves) if i in self.caches else next(leaves) for i in places]
        return tree_unflatten(filled, self.outer)

    def _cache(self, place: int, leaves: Iterator[Any]) -> Any:
        kind, attributes = self.caches[place]
        # Without a call of `__init__`, which asks for a model's configuration.
        cache: Any = object.__new__(kind)
        vars(cache).update(attributes._fill(leaves))
        return cache


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of a nested value, with those inside caches, and the structure around them."""
    from torch.utils._pytree import tree_flatten

    outer_leaves, outer = tree_flatten(value)
    leaves: list[Any] = []
    caches: dict[int, tuple[type, Structure]] = {}
    for place, leaf in enumerate(outer_leaves):
        if _is_cache(leaf):
            # A cache is an object whose attributes hold tensors; pytree does not look into it.
            cache_leaves, attributes = flatten(dict(vars(leaf)))
            caches[place] = type(leaf), attributes
            leaves += cache_leaves
        else:
            leaves.append(leaf)
    return leaves, Structure(outer, caches)


def names(value: Any) -> list[str]:
    """Names of the leaves of a nested value.

    A keyword argument is `'mask'`, a positional one its number, and a leaf inside has the path
    that leads to it, as in `0['mask']`.
    """
    from torch.utils._pytree import keystr, tree_flatten_with_path

    leaf_names: list[str] = []
    for path, leaf in tree_flatten_with_path(value)[0]:
        # `keystr` writes a key as `['mask']` or `[0]`; the brackets fall away.
        first = keystr(path[:1])[1:-1]
        attributes = names(dict(vars(leaf))) if _is_cache(leaf) else [""]
        leaf_names += [first + keystr(path[1:]) + (name and f".{name}") for name in attributes]
    return leaf_names


def _is_cache(value: object) -> bool:
    """True for a cache of transformers, or a layer of one."""
    kind = type(value)
    return hasattr(value, "__dict__") and any(base.__module__ == CACHES for base in kind.__mro__)


def arguments(inputs: object) -> Any:
    """A dict of keyword arguments, otherwise a tuple of positional ones."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def tensor_names(inputs: object) -> list[str]:
    """Names of the tensors among the inputs."""
    leaves = flatten(inputs)[0]
    leaf_names = names(inputs)
    return [leaf_names[i] for i in _tensor_places(leaves)]


def split_tensors(
    inputs: Any,
) -> tuple[tuple[torch.Tensor, ...], Callable[[tuple[torch.Tensor, ...]], Any]]:
    """The tensors in nested inputs, and a function that puts other tensors in their place."""
    leaves, structure = flatten(inputs)
    places = _tensor_places(leaves)

    def fill(values: tuple[torch.Tensor, ...]) -> Any:
        tensors = dict(zip(places, values, strict=True))
        return structure.unflatten([tensors.get(i, leaf) for i, leaf in enumerate(leaves)])

    return tuple(leaves[i] for i in places), fill


def separator(inputs: object) -> Callable[[object], tuple[torch.Tensor, ...]]:
    """A function that takes the tensors out of inputs with the same structure.

    The function raises SituateError for another structure, and for an input that is no tensor and
    differs from the captured one.
    """
    import torch

    leaves, expected = flatten(inputs)
    places = _tensor_places(leaves)

    def separate(other: object) -> tuple[torch.Tensor, ...]:
        for reading in _readings(other, inputs):
            values, structure = flatten(reading)
            if structure == expected and all(isinstance(values[i], torch.Tensor) for i in places):
                _check_numbers(values, leaves)
                return tuple(values[i] for i in places)
        raise SituateError(
            "the inputs are not structured like those of the captured step: they are "
            f"{_outline(other)}, and were {_outline(inputs)}"
        )

    return separate


def _tensor_places(leaves: Sequence[object]) -> list[int]:
    import torch

    return [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]


def _check_numbers(values: Sequence[object], captured: Sequence[object]) -> None:
    """Raises SituateError for an input that is no tensor and differs from the captured one."""
    import torch

    for now, then in zip(values, captured, strict=True):
        if not isinstance(then, torch.Tensor) and now is not then and now != then:
            raise SituateError(
                f"an input is {now!r} and was {then!r} when the step was captured, which holds for "
                "that value alone: capture and plan for this one, or make it a tensor"
            )


def _readings(inputs: object, like: object) -> Iterator[object]:
    """A lone dict may be all keyword arguments, or the one argument. Key order does not matter."""
    readings = [arguments(inputs)]
    if isinstance(inputs, Mapping):
        readings.append((inputs,))
    elif isinstance(inputs, tuple) and len(inputs) == 1 and isinstance(inputs[0], Mapping):
        readings.append(dict(inputs[0]))
    return (_with_key_order(reading, like) for reading in readings)


def _with_key_order(value: Any, like: Any) -> Any:
    """The same value, with the keys of its dicts in the order of `like`."""
    if type(value) is not type(like):
        return value
    if type(value) is dict and value.keys() == like.keys():
        return {key: _with_key_order(value[key], like[key]) for key in like}
    if type(value) in (tuple, list) and len(value) == len(like):
        return type(value)(map(_with_key_order, value, like))
    return value


def _outline(inputs: object) -> str:
    """An outline such as `(tensor, {'mask': tensor})`."""
    import torch

    if isinstance(inputs, torch.Tensor):
        return "tensor"
    if isinstance(inputs, Mapping):
        return f"{{{', '.join(f'{key!r}: {_outline(value)}' for key, value in inputs.items())}}}"
    if isinstance(inputs, (tuple, list)):
        return f"({', '.join(map(_outline, inputs))})"
    return type(inputs).__name__


def sequences(inputs: Any) -> dict[str, Sequence[Any]]:
    """By name, the outermost tuples, lists and arrays of NumPy that hold no tensor.

    An example is the lengths of a batch's sequences. The names are those of `names`.
    """
    return {_sequence_name(keys): value for keys, value in _walk_sequences(inputs, ())}


def replace_sequences(inputs: Any, changes: Mapping[str, Sequence[Any]]) -> Any:
    """The inputs with other sequences of these names."""
    return _with_sequences(inputs, (), changes)


def _walk_sequences(value: Any, keys: Keys) -> Iterator[tuple[Keys, Sequence[Any]]]:
    if keys and _is_sequence(value):
        yield keys, value
        return
    for key, entry in _entries(value):
        yield from _walk_sequences(entry, (*keys, key))


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


def _with_sequences(value: Any, keys: Keys, changes: Mapping[str, Sequence[Any]]) -> Any:
    if keys and _sequence_name(keys) in changes:
        return changes[_sequence_name(keys)]
    entries = {key: _with_sequences(e, (*keys, key), changes) for key, e in _entries(value)}
    if type(value) is dict:
        return entries
    return type(value)(entries.values()) if type(value) in (tuple, list) else value


def _sequence_name(keys: Keys) -> str:
    """A name such as `2`, `frames` or `0['frames']`."""
    return str(keys[0]) + "".join(f"[{key!r}]" for key in keys[1:])
