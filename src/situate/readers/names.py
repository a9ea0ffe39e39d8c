"""Unique names, for formats that do not guarantee them."""

from __future__ import annotations

from collections.abc import Iterable


def unique(names: Iterable[str]) -> list[str]:
    """The names in order; repeated names get the suffixes `#2`, `#3`, ..."""
    names = list(names)
    used_names = set(names)
    counts: dict[str, int] = {}
    return [_next(name, counts, used_names) for name in names]


def _next(name: str, counts: dict[str, int], used_names: set[str]) -> str:
    counts[name] = counts.get(name, 0) + 1
    if counts[name] == 1:
        return name
    while (candidate := f"{name}#{counts[name]}") in used_names:
        counts[name] += 1
    used_names.add(candidate)
    return candidate
