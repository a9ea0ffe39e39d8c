"""The relation between a value in the step of the whole batch and the same value in its slices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

Kind = Literal["shared", "by_sample", "reduced", "places", "unknown"]


@dataclass(frozen=True)
class Relation:
    """The rule by which a value W of the whole batch follows from its values v_s in the slices.

    The batch has n samples, slice s has n_s of them, and r_s = n_s / n.

    Attributes:
        kind: `shared`: W = r_s^power v_s in every slice, as for parameters and numbers.
            `by_sample`: along `axis`, each of `blocks` equal blocks of W is the concatenation of
            the r_s^power v_s of all slices, in their order. `reduced`: W = sum_s r_s^power v_s, so
            a sum over samples has power 0 and a mean 1. `places`: integers; along `axis`, W is the
            concatenation of v_s + scale m_s, where m_s samples come before slice s, as for
            `arange`. `unknown`: none of these.
        power: of r_s; None for zeros, which fit any power.
        axis: the dimension that holds the samples.
        blocks: the number of equal parts of that dimension, each with all samples.
        uniform: all entries along `axis` are equal, so any number of blocks fits.
        scale: entries for each sample.
        assumed: an earlier op relates samples in another way, and the relation is that without the
            op.
    """

    kind: Kind
    power: int | None = 0
    axis: int = 0
    blocks: int = 1
    uniform: bool = False
    scale: int = 1
    assumed: bool = False

    def with_power(self, power: int | None) -> Relation:
        """The same relation with another power."""
        return replace(self, power=power)

    def summed(self) -> Relation:
        """A shared value as the sum of its shares in the slices, since the r_s add up to 1."""
        if self.kind != "shared":
            return self
        power = None if self.power is None else self.power + 1
        return replace(self, kind="reduced", power=power)


SHARED = Relation("shared")
ZERO = Relation("shared", None)
UNKNOWN = Relation("unknown")


def by_sample(axis: int, power: int | None = 0, blocks: int = 1, uniform: bool = False) -> Relation:
    """The relation of a value that has an entry for every sample."""
    return Relation("by_sample", power, axis, blocks, uniform)


def reduced(power: int | None) -> Relation:
    """The relation of a value that is a sum over all samples."""
    return Relation("reduced", power)


def common(relations: Iterable[Relation], otherwise: Relation | None = None) -> Relation:
    """The relation by sample that several tensors share: samples along one dimension, in equally
    many blocks.

    Args:
        relations: of the tensors; shared ones do not count.
        otherwise: the relation if none is by sample.

    Raises:
        Unrelated: samples lie along different dimensions, or a tensor is related in another way.
    """
    relevant = [relation for relation in relations if relation.kind != "shared"]
    if any(relation.kind != "by_sample" for relation in relevant):
        is_reduced = any(relation.kind == "reduced" for relation in relevant)
        raise Unrelated(Reason.TOGETHER if is_reduced else Reason.PLACE)
    if not relevant and otherwise is not None:
        return otherwise
    first = next((relation for relation in relevant if not relation.uniform), relevant[0])
    for other in relevant:
        if other.axis != first.axis:
            raise Unrelated(Reason.PAIRS)
        if not other.uniform and other.blocks != first.blocks:
            raise Unrelated(Reason.PLACE)
    return first


def one_power(powers: Iterable[int | None], reason: Reason | None = None) -> int | None:
    """The common power of all values that are not zero; None if all are zero.

    Raises:
        Unrelated: the powers differ, for this reason; `NUMBER` if none is named.
    """
    unequal = set(powers) - {None}
    if len(unequal) > 1:
        raise Unrelated(reason or Reason.NUMBER)
    return next(iter(unequal), None)


class Reason(Enum):
    """The reason why no relation holds; its value is the text of a note, in which {} is the
    operator."""

    STATISTICS = (
        "batch normalisation: each slice has statistics of its own, as where gradients accumulate; "
        "--batch-norm batch takes those of the batch"
    )
    PAIRS = "{} relates every sample to those of its slice, and not to all of the batch"
    TOGETHER = "{} takes in all samples of a slice together, and not all of the batch"
    PLACE = (
        "{} depends on the place of a sample in the batch, and a sample has another place in its "
        "slice"
    )
    RANDOM = "{} is drawn once a slice, and not once for the batch"
    LABELS = (
        "{} may leave out labels, and each slice is divided by the labels of its own; exact: a "
        "sum, divided by a count of the whole batch that is an input"
    )
    CLASSES = (
        "{} weighs samples by their class, and each slice is divided by weights of its own; exact: "
        "a sum, divided by the weights of the whole batch as an input"
    )
    VIEW = "{} deals out the samples of the batch anew"
    NUMBER = "{} has a number that changes with the size of the batch"
    UNPROVED = "{} is an operator of which situate cannot tell how it relates samples"
    LOSS = "what is made of all samples goes through it"
    POWERS = "it adds means over samples to sums, or sums to what is of no sample"
    PRODUCT = "it multiplies or divides by what depends on the samples"


class Unrelated(Exception):
    """Raised by a rule for an op whose result has no known relation to those of slices.

    Args:
        reason: why.
        otherwise: the relations that its results would have without that reason, if the rule knows
            them.
    """

    def __init__(self, reason: Reason, otherwise: tuple[Relation, ...] = ()) -> None:
        super().__init__(reason.name)
        self.reason = reason
        self.otherwise = otherwise
