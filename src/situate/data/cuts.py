"""Cuts of ops: the dimensions of a step that are divided, and the shares of the parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import cast

import msgspec

from situate.data.slices import AUTO, Sums, shares_text
from situate.errors import SituateError
from situate.validation import check

MOST = 512
"""Largest number of parts of an op."""

MANY = 16
"""Units for each share from which shares need not divide the units exactly."""


class Cut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cut of some classes of dimensions.

    Raises:
        SituateError: no name, fewer than two parts, or a share that is not positive.
    """

    name: str
    """A kind such as `heads`, or the path of a module or a pattern such as `layers.*.mlp`."""
    shares: tuple[int, ...]
    """The size of each part as a ratio to the others."""

    def __post_init__(self) -> None:
        if not self.name:
            raise SituateError("cuts: a name is empty: give a kind such as heads, or a module")
        if not 2 <= len(self.shares) <= MOST:
            raise SituateError(
                f"cuts {self.name}: give 2 to {MOST:,} parts, got {len(self.shares):,}"
            )
        if min(self.shares) < 1:
            raise SituateError(f"cuts {self}: every share must be positive")

    def __str__(self) -> str:
        return f"{self.name}={shares_text(self.shares)}"

    def bounds(self, units: int) -> tuple[int, ...] | None:
        """The begin of each part of these units, and the end of the last.

        Many units are divided to the nearest unit, such as a vocabulary of 50,257. None if there
        are few, which the shares do not divide.
        """
        total = sum(self.shares)
        if units % total and units < MANY * total:
            return None
        ends = accumulate(self.shares, initial=0)
        # end * units / total, rounded half up in whole numbers.
        return tuple((2 * end * units + total) // (2 * total) for end in ends)


class CutParameter(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The division of a parameter among the parts of its class.

    Raises:
        SituateError: fewer than two parts, or bounds that do not rise from 0.
    """

    name: str
    """The path of the parameter."""
    kind: str
    """The kind of its class, such as `heads`."""
    dim: int
    """The dimension that is divided."""
    bounds: tuple[int, ...]
    """The begin of each part within a range, and the end of the last."""
    ranges: int = 1
    """Number of ranges of equal length in the dimension, each of which is divided alike."""
    readers: tuple[tuple[str, str], ...] = ()
    """Path and class of each module that reads the parameter."""

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in pairwise(self.bounds))
        if len(self.bounds) < 3 or self.bounds[0] or not rising:
            raise SituateError(
                f"cut parameter {self.name!r}: bounds must rise from 0 over two parts or more, got "
                f"{list(self.bounds)}"
            )
        if self.dim < 0 or self.ranges < 1:
            raise SituateError(
                f"cut parameter {self.name!r}: give a dimension from 0 and at least one range, got "
                f"{self.dim} and {self.ranges}"
            )

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self.bounds) - 1


class Cuts(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The cuts of a step. An op that several cuts divide follows the first of them.

    Raises:
        SituateError: no cut, or two of one name.
    """

    cuts: tuple[Cut, ...]
    sums: Sums = "chain"
    """The order in which partial results are added up."""

    def __post_init__(self) -> None:
        if not self.cuts:
            raise SituateError("cuts: none: give at least one, such as heads=4")
        names = [cut.name for cut in self.cuts]
        for name in names:
            if names.count(name) > 1:
                raise SituateError(f"cuts: {name!r} is cut twice: give one number of parts")
        if self.sums not in ("chain", "tree"):
            raise SituateError(
                f"cuts: partial results are added up in a chain or in a tree, got {self.sums!r}"
            )

    def __str__(self) -> str:
        names = ", ".join(map(str, self.cuts))
        return names if self.sums == "chain" else f"{names}, sums in a tree"

    @property
    def is_auto(self) -> bool:
        """True if the cuts depend on a cluster, for which planning chooses them."""
        return self.cuts == AUTO_CUTS


AUTO_CUTS = (Cut(AUTO, (1, 1)),)
"""Stands for cuts that planning chooses."""


def parse_cuts(texts: Sequence[str], sums: str | None = None) -> Cuts:
    """Cuts from texts such as `heads=4`, `layers.*.mlp:4` or `features=3:1`; or from `auto` alone.

    Raises:
        SituateError: a text is none of these.
    """
    check(texts, list | tuple, "cuts")
    if tuple(texts) == (AUTO,):
        return Cuts(AUTO_CUTS)
    if AUTO in texts:
        raise SituateError("cuts: auto stands alone: leave the other cuts out, or auto")
    return Cuts(tuple(map(_cut, texts)), cast(Sums, sums or "chain"))


def _cut(text: str) -> Cut:
    check(text, str, "cuts")
    mark = "=" if "=" in text else ":"
    name, _, shares = text.partition(mark)
    numbers = shares.split(":")
    if not all(n.isascii() and n.isdecimal() and len(n) < 10 for n in numbers):
        raise SituateError(
            f"cuts {text!r}: must be NAME=PARTS, such as heads=4 or layers.*.mlp=3:1"
        )
    counts = tuple(map(int, numbers))
    if len(counts) > 1:
        return Cut(name, counts)
    if counts[0] > MOST:
        raise SituateError(f"cuts {name}: give 2 to {MOST:,} parts, got {counts[0]:,}")
    return Cut(name, (1,) * counts[0])
