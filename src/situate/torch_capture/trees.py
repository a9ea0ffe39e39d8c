"""Nested values as the leaves in them, as `torch.utils._pytree` has it, which takes transformers'
caches of keys and values for leaves: here they are what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CACHES = "transformers.cache_utils"


@dataclass(frozen=True)
class Structure:
    """The nesting that holds the leaves.

    Attributes:
        outer: PyTorch's, of which caches are leaves.
        caches: by place among those, the class of a cache and the structure of its attributes.
    """

    outer: Any
    caches: Mapping[int, tuple[type, Structure]]

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The value with these leaves; its caches are new ones."""
        return self._filled(iter(leaves))

    def _filled(self, left: Iterator[Any]) -> Any:
        from torch.utils._pytree import tree_unflatten

        places = range(self.outer.num_leaves)
        filled = [self._cache(i, left) if i in self.caches else next(left) for i in places]
        return tree_unflatten(filled, self.outer)

    def _cache(self, place: int, left: Iterator[Any]) -> Any:
        kind, attributes = self.caches[place]
        made: Any = object.__new__(kind)
        vars(made).update(attributes._filled(left))
        return made


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of a nested value, those in caches among them, and what holds them."""
    from torch.utils._pytree import tree_flatten

    found, outer = tree_flatten(value)
    leaves: list[Any] = []
    caches: dict[int, tuple[type, Structure]] = {}
    for place, leaf in enumerate(found):
        if _is_cache(leaf):
            held, attributes = flatten(dict(vars(leaf)))
            caches[place] = type(leaf), attributes
            leaves += held
        else:
            leaves.append(leaf)
    return leaves, Structure(outer, caches)


def names(value: Any) -> list[str]:
    """Names of the leaves of a nested value: of arguments by name `'mask'`, of others their
    number, and in these what leads to the leaf, as in `0['mask']`."""
    from torch.utils._pytree import keystr, tree_flatten_with_path

    found: list[str] = []
    for path, leaf in tree_flatten_with_path(value)[0]:
        first = keystr(path[:1])[1:-1]
        inside = names(dict(vars(leaf))) if _is_cache(leaf) else [""]
        found += [first + keystr(path[1:]) + (each and f".{each}") for each in inside]
    return found


def _is_cache(value: object) -> bool:
    """True for a cache of transformers, or a layer of one."""
    kind = type(value)
    return hasattr(value, "__dict__") and any(each.__module__ == CACHES for each in kind.__mro__)
