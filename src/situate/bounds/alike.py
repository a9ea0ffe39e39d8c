"""Rows that are alike: many ops of a network are copies of one another."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Floats

FEW_ROWS = 64
"""So many rows are compared in pairs, however long they are."""

Indices = NDArray[np.intp]


def alike(rows: NDArray[Any]) -> tuple[Indices, Indices]:
    """The first of each set of rows (k, w) with the same bytes, in the order of the rows, and the
    set (k,) that each row is in."""
    rows = np.ascontiguousarray(rows)
    # (k,) each row as one item of all its bytes.
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    seen: dict[object, int] = {}
    of_row = np.array([seen.setdefault(row, len(seen)) for row in whole.tolist()], np.intp)
    first = np.full(len(seen), len(rows), np.intp)
    np.minimum.at(first, of_row, np.arange(len(rows)))
    return first, of_row


def distinct(rows: Floats) -> tuple[Floats, Indices]:
    """The distinct rows, sorted, and which of them each row is."""
    first, of_row = alike(rows)
    candidates = rows[first]
    rising = _rising(candidates)
    ordered = candidates[rising]
    # Numbers may be equal whose bytes differ: 0.0 and -0.0.
    new = np.concatenate(([True], (ordered[1:] != ordered[:-1]).any(axis=1)))
    which = np.empty(len(candidates), np.intp)
    which[rising] = np.cumsum(new) - 1
    return ordered[new], which[of_row]


def _rising(rows: Floats) -> Indices:
    """Indices of rows in lexicographic order."""
    if len(rows) > FEW_ROWS:
        return np.lexsort(rows.T[::-1])

    def compare(a: int, b: int) -> int:
        differing = np.flatnonzero(rows[a] != rows[b])
        return (
            0 if not len(differing) else -1 if rows[a][differing[0]] < rows[b][differing[0]] else 1
        )

    return np.array(sorted(range(len(rows)), key=cmp_to_key(compare)), np.intp)
