"""The cuts to try: combinations of kinds of dimensions and divisions among devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log2

from situate.data.cuts import Cuts
from situate.solvers.cut_choice.divisions import Division

USUAL = 8
"""A number of parts that pays on most machines: the GPUs of a server."""

INNER = ("experts", "heads", "features", "vocabulary", "channels")
"""Kinds of dimensions that carry parameters, which tensor parallelism cuts; experts come first."""

EXPERTS = "experts"
"""The kind of the dimension that counts experts."""

TABLES = "vocabulary"
"""The kind of the largest parameters of a language model."""

OUTER = ("sequence", "batch")
"""Kinds of dimensions of the activations alone."""

Units = Mapping[str, Sequence[int]]
"""By kind, the units of each class of that kind, such as the heads of each layer."""


def candidates(divisions: Sequence[Division], units: Units) -> Iterator[Cuts]:
    """The cuts to try: unequal parts, then equal ones.

    Numbers near `USUAL` come first.
    """
    inner, outer = ([kind for kind in kinds if kind in units] for kinds in (INNER, OUTER))
    # Behind an outer dimension, the inner ones cut parameters alone, as ZeRO and FSDP do.
    sets = [[*inner, kind] for kind in outer] + [inner] + [[kind] for kind in outer]
    sets += [[kind, *inner] for kind in outer if inner]
    # Experts take their tokens from all devices, between layers that are data parallel.
    experts = [kind for kind in inner if kind == EXPERTS]
    rest = [kind for kind in inner if kind != EXPERTS]
    sets += [[*experts, kind, *rest] for kind in outer if experts]
    # With few large tables in parts, whole layers are shared among devices, as ZeRO's buckets are.
    sets += [[*experts, kind, TABLES] for kind in outer if TABLES in inner]
    # Where links are slow, the kind with the most work for its exchanges pays alone.
    sets += [[kind] for kind in inner]
    ordered = sorted(divisions, key=lambda d: (d.is_equal, abs(log2(d.count / USUAL)), d.count))
    combinations = (divided(division, kinds, units) for division in ordered for kinds in sets)
    yield from filter(None, dict.fromkeys(combinations))


def divided(division: Division, kinds: Sequence[str], units: Units) -> Cuts | None:
    """The cuts of those of these kinds that have such a division; None if no kind has one."""
    cuts = tuple(filter(None, (division.cut(kind, units[kind]) for kind in kinds)))
    return Cuts(cuts) if cuts else None
