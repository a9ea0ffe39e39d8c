"""A step whose ops are cut along their own dimensions. Parts of an op are ops, and parts of a
parameter are parameters, each with its own update."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fnmatch import fnmatchcase

from situate.data.cuts import Cut, Cuts
from situate.errors import SituateError, nearest
from situate.torch_capture.cuts.classes import Class, classes
from situate.torch_capture.cuts.rewrite import rewritten
from situate.torch_capture.tracing import Trace


def cut_ops(trace: Trace, cuts: Cuts, found: Sequence[Class] | None = None) -> Trace:
    """The trace of a step whose ops are cut.

    Args:
        found: the classes of the step, if they are known.

    Raises:
        SituateError: a name of no class, or shares that do not divide its units.
    """
    if cuts.is_auto:
        raise SituateError(
            "cuts: auto is chosen for a cluster, by plan, compare and explain: name cuts, such as "
            "heads=4"
        )
    found = classes(trace) if found is None else found
    chosen = [pair for own in cuts.cuts for pair in _chosen(own, found)]
    kept = [(one, bounds) for one, bounds in chosen if bounds is not None]
    step = rewritten(trace, kept, cuts.sums)
    lines = [_whole_note(one) for one, bounds in chosen if bounds is None]
    return dataclasses.replace(step, cuts=cuts, notes=(*step.notes, *lines))


def _whole_note(one: Class) -> str:
    where = f" of {one.module}" if one.module else ""
    return f"cuts: {one.kind}{where} stay whole, because the shares do not divide {one.units} units"


def _chosen(own: Cut, found: Sequence[Class]) -> list[tuple[Class, tuple[int, ...] | None]]:
    """The classes that a cut names, with the bounds of their parts; None where the shares do not
    divide a class that has others of its kind beside it.

    Raises:
        SituateError: there is no such class, or the shares divide none.
    """
    matching = [one for one in found if _matches(own.name, one)]
    if not matching:
        names = sorted({one.kind for one in found} | {one.module for one in found if one.module})
        raise SituateError(
            f"cuts: the step has nothing called {own.name!r} to cut{nearest(own.name, names)}: "
            f"it has {', '.join(sorted({one.kind for one in found})) or 'no dimension to cut'}"
        )
    pairs = [(one, own.bounds(one.units)) for one in matching]
    if all(bounds is None for _, bounds in pairs):
        raise _indivisible(own, matching[0])
    return pairs


def _matches(name: str, one: Class) -> bool:
    """True if a name is the kind of a class, or names its module or one around it."""
    if name == one.kind:
        return True
    parts = one.module.split(".")
    paths = [".".join(parts[:end]) for end in range(1, len(parts) + 1) if one.module]
    return any(path == name or fnmatchcase(path, name) for path in paths)


def _indivisible(own: Cut, one: Class) -> SituateError:
    where = f" of {one.module}" if one.module else ""
    count = len(own.shares)
    if one.units < count:
        remedy = f"give at most {one.units} parts"
    else:
        near = [one.units * (i + 1) // count - one.units * i // count for i in range(count)]
        remedy = f"give shares that add up to {one.units}, such as {':'.join(map(str, near))}"
    return SituateError(
        f"cuts {own}: the {one.kind}{where} are {one.units} units, which these shares do not "
        f"divide: {remedy}"
    )
