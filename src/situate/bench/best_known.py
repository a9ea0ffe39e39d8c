"""The table of best-known values and bounds: it only improves, and says who found each."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from situate.errors import ReadError, SituateError
from situate.files.atomic import write_bytes
from situate.files.contents import contents
from situate.files.strict_json import decode, json_bytes

PACKAGED = Path(__file__).parent / "best_known.json"
"""The table that comes with situate."""

ROUNDED = 1e-5
"""Relative rounding of values in print."""

EQUAL = 1e-9
"""Relative difference of values that rounding alone may make."""


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value or a bound, and where it comes from."""

    value: float
    by: str
    """The method; or the publication, where there is no `version`."""
    time_limit: float | None = None
    """Seconds that the method was given."""
    seed: int | None = None
    version: str = ""
    commit: str = ""
    date: str = ""
    """ISO 8601."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The best that is known of a problem.

    Attributes:
        problem: its hash, see `problem_hash`.
        family, instance: its name.
        best: the smallest value of a plan that fits; None where none is known.
        bound: the largest value that no plan is below; None where none is known.
    """

    problem: str
    family: str
    instance: str
    best: Finding | None = None
    bound: Finding | None = None


class _File(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="format",
    tag="situate-best-known",
):
    version: int
    entries: list[Entry]


class BestKnown:
    """A table of best-known values, by the hash of the problem.

    Raises:
        SituateError: a value that is negative or not finite, or one below a bound.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: dict[str, Entry] = {}
        self.learn_all(entries)

    @classmethod
    def read(cls, path: str | Path) -> BestKnown:
        """Read a table.

        Raises:
            ReadError: no such file, not a table, or a table that contradicts itself; names the file
                and the instance.
        """
        try:
            file = decode(contents(Path(path)), _File)
            if file.version != 1:
                raise ReadError(f"version {file.version}; this situate reads version 1")
            return cls(file.entries)
        except SituateError as error:
            raise ReadError(f"{path}: not a table of best-known values: {error}") from None

    def learn_all(self, entries: Iterable[Entry]) -> None:
        """Keep every better value of the entries; raises as `learn` does."""
        for entry in entries:
            self.learn(entry)

    def write(self, path: str | Path) -> None:
        """Write the table, whole or not at all, after learning values that another process may have
        written there.

        Raises:
            SituateError: the path cannot be written, or holds something else.
        """
        if os.path.exists(path):
            self.learn_all(self.read(path).entries.values())
        entries = sorted(self._entries.values(), key=lambda e: (e.family, e.instance, e.problem))
        write_bytes(path, json_bytes(_File(1, entries)))

    @property
    def entries(self) -> Mapping[str, Entry]:
        """By the hash of the problem."""
        return self._entries

    def learn(self, entry: Entry) -> bool:
        """Keep the better values of an entry; True if it has any.

        Raises:
            SituateError: a value that is negative or not finite; a value below a bound: one of the
                two is wrong, and neither is kept.
        """
        _check_numbers(entry)
        before = self._entries.get(
            entry.problem, Entry(entry.problem, entry.family, entry.instance)
        )
        best = _smaller(before.best, entry.best)
        lower = _larger(before.bound, entry.bound)
        _check_consistent(entry, best, lower)
        after = msgspec.structs.replace(before, best=best, bound=lower)
        self._entries[entry.problem] = after
        return after != before


def _smaller(before: Finding | None, new: Finding | None) -> Finding | None:
    if before is None or new is None:
        return new or before
    return new if new.value < before.value * (1 - _tolerance(before, new)) else before


def _larger(before: Finding | None, new: Finding | None) -> Finding | None:
    if before is None or new is None:
        return new or before
    return new if new.value > before.value * (1 + _tolerance(before, new)) else before


def _tolerance(*findings: Finding) -> float:
    """The relative difference below which two findings are equal."""
    # Without a version a finding is from print, where values are rounded.
    return EQUAL if all(finding.version for finding in findings) else ROUNDED


def _check_numbers(entry: Entry) -> None:
    for noun, finding in (("best value", entry.best), ("bound", entry.bound)):
        if finding and not (math.isfinite(finding.value) and finding.value >= 0):
            raise SituateError(
                f"{_name(entry)}: the {noun} must be a number from 0 on, got {finding.value}"
            )


def _check_consistent(entry: Entry, best: Finding | None, bound: Finding | None) -> None:
    if best is None or bound is None:
        return
    if best.value < bound.value * (1 - _tolerance(best, bound)):
        raise SituateError(
            f"{_name(entry)}: the best value {best.value!r} ({_source_text(best)}) is below the "
            "bound "
            f"{bound.value!r} ({_source_text(bound)}): one of them is wrong; take it out of the "
            "table"
        )


def _name(entry: Entry) -> str:
    return f"{entry.family}: {entry.instance}"


def _source_text(finding: Finding) -> str:
    return f"{finding.by}, {finding.version}" if finding.version else finding.by
