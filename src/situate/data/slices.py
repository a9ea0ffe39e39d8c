"""Slices of a step's batch: their sizes and the rules for inputs, losses and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Literal, cast, get_args

import msgspec

from situate.errors import SituateError
from situate.validation import check

Reduction = Literal["mean", "sum"]
"""The reduction of samples' losses to the loss of a batch."""

Statistics = Literal["slice", "batch"]
"""The samples over which a training batch norm takes its statistics."""

Sums = Literal["chain", "tree", "auto"]
"""The order in which the gradients of slices are added up: a running sum, or a tree of pairs of
neighbours; or a choice of planning."""

MOST = 4096
"""Largest number of slices of a step."""

AUTO = "auto"
"""The word for a choice by planning, of slices or of parameters with a single copy."""


class Slices(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The slices of a step's batch, as asked for or, in a graph and a plan, as they were cut.

    Raises:
        SituateError: fewer than two slices, a share that is not positive, or a word that a field
            does not have.
    """

    shares: tuple[int, ...]
    """The size of each slice as a ratio to the others; of a batch that has been cut, samples."""
    axes: dict[str, int | None] = {}
    """By input name, the dimension along which it is cut; None if every slice reads all of it.
    Other inputs are cut along dimension 0."""
    loss: Reduction | None = None
    """The loss of a batch is the mean, or the sum, of its samples' losses; None to detect it."""
    replicas: tuple[int, ...] = ()
    """By replica of the parameters, the number of slices that read it; empty without replicas."""
    once: tuple[str, ...] = ()
    """Names of parameters, or patterns such as `embed*`, with a single copy beside replicas."""
    batch_norm: Statistics = "slice"
    """The samples of batch norm statistics: each slice's own, or the whole batch's, for which
    slices wait for one another."""
    sums: Sums = "chain"
    """The order in which gradients are added up, within each replica and then over replicas."""

    def __post_init__(self) -> None:
        if not 2 <= len(self.shares) <= MOST:
            raise SituateError(f"slices: give 2 to {MOST:,} of them, got {len(self.shares)}")
        if min(self.shares) < 1:
            raise SituateError(f"slices {self}: every share must be positive")
        _check_words(self.loss, self.batch_norm, self.sums)
        if self.replicas:
            self._check_replicas()
        elif self.once:
            raise SituateError("slices: without replicas every parameter is there once")

    def _check_replicas(self) -> None:
        most = len(self.shares)
        _check_count(len(self.replicas), most)
        if min(self.replicas) < 1 or sum(self.replicas) != most:
            raise SituateError(
                f"replicas {':'.join(map(str, self.replicas))}: give the slices that read each, at "
                f"least one, which add up to {most}"
            )

    def __str__(self) -> str:
        """`4` for equal slices, or `3:1`; with replicas `4, replicas 2`."""
        parts = [shares_text(self.shares)]
        if self.replicas:
            parts.append(f"replicas {shares_text(self.replicas)}")
        if self.once:
            parts.append(f"parameters there once {len(self.once):,}")
        if self.batch_norm == "batch":
            parts.append("batch norms over the batch")
        if self.sums == "tree":
            parts.append("sums in a tree")
        return ", ".join(parts)

    @property
    def replica(self) -> tuple[int, ...]:
        """By slice, the number of its replica; 0 without replicas.

        The slices of each replica are spread evenly over the batch, so that all replicas begin
        early.
        """
        counts = self.replicas or (len(self.shares),)
        turns = (
            # Exact fractions: equal positions tie, and the lower replica goes first.
            (Fraction(turn, count), r)
            for r, count in enumerate(counts)
            for turn in range(count)
        )
        return tuple(r for _, r in sorted(turns))

    def samples(self, batch: int) -> tuple[int, ...]:
        """The samples of each slice of a batch.

        Raises:
            SituateError: it cannot be cut in these shares.
        """
        count, total = len(self.shares), sum(self.shares)
        if count > batch:
            raise SituateError(
                f"slices {self}: more than the {batch} samples of the batch: give at most {batch}"
            )
        if batch % total:
            near = ":".join(map(str, nearest_samples(self.shares, batch)))
            raise SituateError(
                f"slices {self}: {batch} samples cannot be cut in these shares: give samples that "
                f"add up to {batch}, such as {near}"
            )
        return tuple(share * (batch // total) for share in self.shares)


class AutoSlices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules for slices whose number and sizes planning chooses."""

    axes: dict[str, int | None] = {}
    loss: Reduction | None = None
    batch_norm: Statistics = "slice"
    sums: Sums = "chain"
    """All as in `Slices`."""

    def __post_init__(self) -> None:
        _check_words(self.loss, self.batch_norm, self.sums)
        if self.sums == AUTO:
            raise SituateError(
                "slices: the order of sums is chosen for one cut of the batch: give chain or tree"
            )

    def of(self, shares: Sequence[int]) -> Slices:
        """Slices in these shares."""
        return Slices(
            tuple(shares), self.axes, self.loss, batch_norm=self.batch_norm, sums=self.sums
        )


def parse_auto(
    axes: Sequence[str] | None = None,
    loss: str | None = None,
    batch_norm: str | None = None,
    sums: str | None = None,
) -> AutoSlices:
    """Slices for planning to choose, from a user's settings; arguments and errors as of `parse`."""
    # The words are checked where slices are made of them.
    return AutoSlices(
        dict(map(_axis, axes or ())),
        cast("Reduction | None", loss),
        cast(Statistics, batch_norm or "slice"),
        cast(Sums, sums or "chain"),
    )


def parse(
    text: str,
    axes: Sequence[str] | None = None,
    loss: str | None = None,
    replicas: str | None = None,
    once: Sequence[str] | None = None,
    batch_norm: str | None = None,
    sums: str | None = None,
) -> Slices:
    """Slices from their text.

    Args:
        text: the number of equal slices, such as `4`, or their shares, such as `3:1`.
        axes: `INPUT=AXIS` or `INPUT=whole` for inputs that are not cut along dimension 0.
        loss: `mean` or `sum`.
        replicas: of the parameters: their number, each with as many slices, or the number of slices
            of each, such as `4:2`.
        once: names of parameters, or patterns, with a single copy beside the replicas.
        batch_norm: `slice` or `batch`, the samples of batch norm statistics.
        sums: `chain`, `tree` or `auto`, the order in which gradients are added up.

    Raises:
        SituateError: invalid settings.
    """
    check(text, str, "slices")
    options, order = parse_auto(axes, loss, batch_norm), cast(Sums, sums or "chain")
    if (shares := _numbers(text)) is None:
        raise SituateError(
            f"slices {text!r}: must be a number of equal slices, such as 4, or shares, such as 3:1"
        )
    if len(shares) == 1:
        shares = (1,) * min(shares[0], MOST + 1)
    readers = () if replicas is None else _replicas(replicas, len(shares))
    names = tuple(once or ())
    return Slices(shares, options.axes, options.loss, readers, names, options.batch_norm, order)


def _replicas(text: str, slices: int) -> tuple[int, ...]:
    """By replica, the slices that read it."""
    if (counts := _numbers(text)) is None:
        raise SituateError(
            f"replicas {text!r}: must be a number of them, such as 2, or the slices that read "
            "each, such as 3:1"
        )
    if len(counts) > 1:
        return counts
    _check_count(counts[0], slices)
    if slices % counts[0]:
        samples = ":".join(map(str, nearest_samples((1,) * counts[0], slices)))
        raise SituateError(
            f"replicas {text}: {slices} slices are no multiple of it: say how many read each, such "
            f"as {samples}"
        )
    return (slices // counts[0],) * counts[0]


def _check_count(replicas: int, slices: int) -> None:
    if not 2 <= replicas <= slices:
        raise SituateError(
            f"replicas: give at least 2, and no more than the {slices:,} slices, got {replicas}"
        )


def _numbers(text: str) -> tuple[int, ...] | None:
    """The whole numbers between colons."""
    parts = text.split(":")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        return None
    return tuple(map(int, parts))


def _check_words(loss: str | None, batch_norm: str, sums: str) -> None:
    if loss is not None and loss not in get_args(Reduction):
        raise SituateError(f"slices: the loss must be a mean or a sum over samples, got {loss!r}")
    if batch_norm not in get_args(Statistics):
        raise SituateError(
            "slices: batch norms take statistics over each slice or over the batch, got "
            f"{batch_norm!r}: give slice or batch"
        )
    if sums not in get_args(Sums):
        raise SituateError(
            f"slices: gradients are added up in a chain or in a tree, got {sums!r}: give chain, "
            "tree or auto"
        )


def _axis(text: str) -> tuple[str, int | None]:
    name, _, axis = text.rpartition("=")
    number = axis.isascii() and axis.isdecimal() and len(axis) < 4
    if not name or not (number or axis == "whole"):
        raise SituateError(f"slices: {text!r} must be INPUT=AXIS, such as mask=1, or INPUT=whole")
    return name, int(axis) if number else None


def shares_text(shares: Sequence[int]) -> str:
    """`4` for equal slices, or `3:1`; `whole` without slices."""
    if not shares:
        return "whole"
    return str(len(shares)) if len(set(shares)) == 1 else ":".join(map(str, shares))


def nearest_samples(shares: Sequence[int], batch: int) -> list[int]:
    """Samples that add up to a batch, at least one a slice, about as the shares ask for."""
    # One sample each first. Cumulative shares are rounded, so that the rest adds up exactly.
    rest, total = batch - len(shares), sum(shares)
    ends = [round(end * rest / total) for end in accumulate(shares, initial=0)]
    return [1 + end - begin for begin, end in pairwise(ends)]
