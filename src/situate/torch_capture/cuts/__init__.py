"""A step whose ops are cut along their own dimensions. Parts of an op are ops, and parts of a
parameter are parameters, each with its own update."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fnmatch import fnmatchcase

from situate.data.cuts import MOST, Cut, Cuts
from situate.errors import SituateError, nearest
from situate.torch_capture.cuts.classes import KINDS, LetterClass, classes
from situate.torch_capture.cuts.rewrite import rewritten
from situate.torch_capture.cuts.writer import FakeResults
from situate.torch_capture.garbage import without_collection
from situate.torch_capture.tracing import Trace

MAX_DIVISORS = 6
"""Most numbers of parts that a remedy lists."""


@without_collection()
def cut_ops(
    trace: Trace,
    cuts: Cuts,
    letter_classes: Sequence[LetterClass] | None = None,
    results: FakeResults | None = None,
) -> Trace:
    """The trace of a step whose ops are cut.

    Args:
        letter_classes: the classes of the step, if they are known.
        results: of calls in earlier cuts of the step.

    Raises:
        SituateError: a name of no class, or shares that do not divide its units.
    """
    if cuts.is_auto:
        raise SituateError(
            "cuts: auto is chosen for a cluster, by plan, compare and explain: name cuts, such as "
            "heads=4"
        )
    letter_classes = classes(trace) if letter_classes is None else letter_classes
    pairs = [pair for own in cuts.cuts for pair in _classes_of(own, letter_classes)]
    divisible = [(one, bounds) for one, bounds in pairs if bounds is not None]
    step = rewritten(trace, divisible, cuts.sums, results or FakeResults())
    lines = [_whole_note(one) for one, bounds in pairs if bounds is None]
    return dataclasses.replace(step, cuts=cuts, notes=(*step.notes, *lines))


def _whole_note(one: LetterClass) -> str:
    where = f" of {one.module}" if one.module else ""
    return f"cuts: {one.kind}{where} stay whole, because the shares do not divide {one.units} units"


def _classes_of(
    own: Cut, letter_classes: Sequence[LetterClass]
) -> list[tuple[LetterClass, tuple[int, ...] | None]]:
    """The classes that a cut names, with the bounds of their parts; None where the shares do not
    divide a class that has others of its kind beside it.

    Raises:
        SituateError: there is no such class, or the shares divide none.
    """
    matching = [one for one in letter_classes if _matches(own.name, one)]
    if not matching:  # a path within a model that has its layers deeper, such as model.layers
        matching = [one for one in letter_classes if _matches(f"*.{own.name}", one)]
    if not matching:
        raise _unknown(own.name, letter_classes)
    pairs = [(one, own.bounds(one.units)) for one in matching]
    if all(bounds is None for _, bounds in pairs):
        raise _indivisible(own, matching[0])
    return pairs


def _unknown(name: str, letter_classes: Sequence[LetterClass]) -> SituateError:
    kinds = sorted({one.kind for one in letter_classes})
    names = [*kinds, *sorted({one.module for one in letter_classes if one.module})]
    # A kind that other steps have is no misspelling.
    likely = "" if name in KINDS else nearest(name, names)
    it_has = " It has" if likely.endswith("?") else ": it has"
    return SituateError(
        f"cuts: the step has nothing called {name!r} to cut{likely}{it_has} "
        f"{', '.join(kinds) or 'no dimension to cut'}"
    )


def _matches(name: str, one: LetterClass) -> bool:
    """True if a name is the kind of a class, or names its module or one around it."""
    if name == one.kind:
        return True
    parts = one.module.split(".")
    paths = [".".join(parts[:end]) for end in range(1, len(parts) + 1) if one.module]
    return any(path == name or fnmatchcase(path, name) for path in paths)


def _indivisible(own: Cut, one: LetterClass) -> SituateError:
    where = f" of {one.module}" if one.module else ""
    count = len(own.shares)
    if one.units < count:
        remedy = f"give at most {one.units} parts"
    else:
        # The most even shares: they differ by one unit at most.
        near = [one.units * (i + 1) // count - one.units * i // count for i in range(count)]
        shares = f"shares that add up to {one.units}, such as {':'.join(map(str, near))}"
        remedy = f"give {_divisors_text(one.units)}{shares}"
    return SituateError(
        f"cuts {own}: the {one.kind}{where} are {one.units} units, which these shares do not "
        f"divide: {remedy}"
    )


def _divisors_text(units: int) -> str:
    """The numbers of equal parts of these units, before other shares; empty for a prime."""
    divisors = [str(k) for k in range(2, min(units, MOST) + 1) if units % k == 0]
    if len(divisors) < 2:
        return ""
    if len(divisors) > MAX_DIVISORS:
        return f"{', '.join(divisors[:MAX_DIVISORS])}, ... parts, or "
    return f"{', '.join(divisors[:-1])} or {divisors[-1]} parts, or "
