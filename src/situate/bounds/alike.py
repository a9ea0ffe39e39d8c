"""Equal rows of arrays, such as the sets of devices that units may use.

Many ops of a network are copies of one another, so few rows are distinct.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Bools, Floats, Ints
from situate.data.problem import Problem

FEW_ROWS = 64
"""Most rows that are compared in pairs, of any length."""

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, whose bits look random (D. E. Knuth, *The Art of Computer
Programming*, volume 3, section 6.4)."""

Indices = NDArray[np.intp]


def equal_rows(rows: NDArray[Any]) -> tuple[Indices, Indices]:
    """Sets of rows (k, w) with the same bytes: the first row of each, and the set (k,) of each row.

    Sets are in the order of their first rows.
    """
    # (k, bytes) the same rows as bytes.
    rows = np.ascontiguousarray(rows).view(np.uint8)
    if len(rows) > FEW_ROWS:
        _, first, of_row = np.unique(_hashes(rows), return_index=True, return_inverse=True)
        if np.array_equal(rows[first[of_row]], rows):
            rising = np.argsort(first)
            return first[rising], np.argsort(rising)[of_row]
    # Few rows, or different rows with one hash: each row is one item.
    whole = rows.view(np.dtype((np.void, rows.shape[1]))).ravel()
    index: dict[object, int] = {}
    of_row = np.array([index.setdefault(row, len(index)) for row in whole.tolist()], np.intp)
    first = np.full(len(index), len(rows), np.intp)
    np.minimum.at(first, of_row, np.arange(len(rows)))
    return first, of_row


def _hashes(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """(k,) a number for each row (k, bytes); equal for equal rows."""
    words = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), np.uint8)
    words[:, : rows.shape[1]] = rows
    hashes = np.zeros(len(rows), np.uint64)
    for column in words.view(np.uint64).T:
        # Products with odd factors are one to one. They move bits up only, the shift moves them
        # down.
        hashes = (hashes ^ column) * HASH_FACTOR
        hashes ^= hashes >> np.uint64(29)
    return hashes


def distinct(rows: Floats) -> tuple[Floats, Indices]:
    """The distinct rows, sorted, and the index among them of each row."""
    first, of_row = equal_rows(rows)
    candidates = rows[first]
    rising = _rising(candidates)
    ordered = candidates[rising]
    # Equal numbers may differ in their bytes: 0.0 and -0.0.
    new = np.concatenate(([True], (ordered[1:] != ordered[:-1]).any(axis=1)))
    which = np.empty(len(candidates), np.intp)
    which[rising] = np.cumsum(new) - 1
    return ordered[new], which[of_row]


def _rising(rows: Floats) -> Indices:
    """Indices of rows in lexicographic order."""
    if len(rows) > FEW_ROWS:
        # The last key of lexsort counts first, so the columns are reversed.
        return np.lexsort(rows.T[::-1])

    # Few rows may be very long: a comparison stops at the first difference.
    def compare(a: int, b: int) -> int:
        differing = np.flatnonzero(rows[a] != rows[b])
        return (
            0 if not len(differing) else -1 if rows[a][differing[0]] < rows[b][differing[0]] else 1
        )

    return np.array(sorted(range(len(rows)), key=cmp_to_key(compare)), np.intp)


# Allowed devices of units, as sets.
@dataclass(frozen=True)
class DeviceSets:
    """The distinct sets of allowed devices of a problem's units.

    Attributes:
        sets: (k, d), the sets of most units first.
        of_unit: (units,) index of the set of each unit.
    """

    sets: Bools
    of_unit: Ints

    @classmethod
    def of(cls, problem: Problem) -> DeviceSets:
        """The sets of a problem's units."""
        first, of_row = equal_rows(problem.allowed)
        falling = np.argsort(-np.bincount(of_row), kind="stable")
        # The inverse of a permutation.
        place = np.argsort(falling)
        return cls(problem.allowed[first[falling]], place[of_row])
