"""Unique names, where a format does not promise them."""

from __future__ import annotations

from collections.abc import Iterable


def unique(names: Iterable[str]) -> list[str]:
    """The names in order, those that came before with `#2`, `#3`, ... behind them."""
    names = list(names)
    taken = set(names)
    seen: dict[str, int] = {}
    return [_next(name, seen, taken) for name in names]


def _next(name: str, seen: dict[str, int], taken: set[str]) -> str:
    seen[name] = seen.get(name, 0) + 1
    if seen[name] == 1:
        return name
    while (candidate := f"{name}#{seen[name]}") in taken:
        seen[name] += 1
    taken.add(candidate)
    return candidate
