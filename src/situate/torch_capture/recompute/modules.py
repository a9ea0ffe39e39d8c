"""The choice of modules that run again, by path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from situate.data.recompute import ALL
from situate.errors import SituateError, nearest
from situate.torch_capture.recompute.saved import Saved, enclosing

LEAST = 0.01
"""Share of the largest module's saved bytes below which `ALL` leaves a module out."""


def choose_modules(saved: Saved, patterns: Sequence[str]) -> tuple[str, ...]:
    """The modules that match patterns and save values for their backward pass, in the order in
    which they run. Of nested modules only the outermost counts.

    Raises:
        SituateError: no module matches, or none saves anything.
    """
    paths = list(dict.fromkeys(p for path in saved.module.values() for p in enclosing(path)))
    selected = {path for pattern in patterns for path in _matching_modules(saved, paths, pattern)}
    return tuple(path for path in paths if path in selected and not _lies_in(path, selected))


def _matching_modules(saved: Saved, paths: Sequence[str], pattern: str) -> list[str]:
    if pattern == ALL:
        matching = best_cut(paths, saved.saved_bytes)
    elif not (matching := [path for path in paths if fnmatchcase(path, pattern)]):
        raise SituateError(
            f"recompute: no module of the forward pass is called {pattern!r}"
            f"{nearest(pattern, paths)}"
        )
    if saving := [path for path in matching if path in saved.saved_bytes]:
        return saving
    raise SituateError(
        f"recompute: nothing to run again in {pattern!r}: the backward pass reads nothing that "
        "stays inside: name modules of several ops"
    )


def best_cut(paths: Sequence[str], saved_bytes: Mapping[str, int]) -> list[str]:
    """The modules, none inside another, whose recomputation saves the most memory.

    Recomputation frees the saved bytes of all of them, but those of one module exist while its
    backward pass runs.

    Args:
        paths: of all modules.
        saved_bytes: of each module, for the backward pass; modules that save nothing are left out.
    """
    best, most = list[str](), 0
    # One module is recomputed at a time, so the largest one of the cut bounds the extra memory.
    for limit in sorted({*saved_bytes.values()}, reverse=True):
        cut = _cut(paths, saved_bytes, limit)
        if (freed := sum(saved_bytes[path] for path in cut) - limit) > most:
            best, most = cut, freed
    return best


def _cut(paths: Sequence[str], saved_bytes: Mapping[str, int], limit: int) -> list[str]:
    """The outermost modules that save no more bytes than a limit, without those that save hardly
    any."""
    within_limit = {path for path in paths if saved_bytes.get(path, 0) <= limit}
    outermost = (
        path for path in paths if path in within_limit and not _lies_in(path, within_limit)
    )
    return [path for path in outermost if saved_bytes.get(path, 0) >= LEAST * limit]


def _lies_in(path: str, others: set[str]) -> bool:
    """True if a module lies in one of others."""
    *around, _ = enclosing(path)
    return not others.isdisjoint(around)
