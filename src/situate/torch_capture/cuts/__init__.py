"""A step whose ops are cut along their own dimensions. Parts of an op are ops, and parts of a
parameter are parameters, each with its own update."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fnmatch import fnmatchcase

from situate.data.cuts import Cut, Cuts
from situate.errors import SituateError, nearest
from situate.torch_capture.cuts.classes import Class, classes
from situate.torch_capture.cuts.rewrite import Chosen, rewritten
from situate.torch_capture.tracing import Trace


def cut_ops(trace: Trace, cuts: Cuts) -> Trace:
    """The trace of a step whose ops are cut.

    Raises:
        SituateError: a name of no class, or shares that do not divide its units.
    """
    found = classes(trace)
    chosen = [pair for own in cuts.cuts for pair in _chosen(own, found)]
    return dataclasses.replace(rewritten(trace, chosen, cuts.sums), cuts=cuts)


def _chosen(own: Cut, found: Sequence[Class]) -> list[Chosen]:
    """The classes that a cut names, with the bounds of their parts."""
    matching = [one for one in found if _matches(own.name, one)]
    if not matching:
        names = sorted({one.kind for one in found} | {one.module for one in found if one.module})
        raise SituateError(
            f"cuts: the step has nothing called {own.name!r} to cut{nearest(own.name, names)}: "
            f"it has {', '.join(sorted({one.kind for one in found})) or 'no dimension to cut'}"
        )
    return [(one, _bounds(own, one)) for one in matching]


def _matches(name: str, one: Class) -> bool:
    """True if a name is the kind of a class, or names its module or one around it."""
    if name == one.kind:
        return True
    parts = one.module.split(".")
    paths = [".".join(parts[:end]) for end in range(1, len(parts) + 1) if one.module]
    return any(path == name or fnmatchcase(path, name) for path in paths)


def _bounds(own: Cut, one: Class) -> tuple[int, ...]:
    if (bounds := own.bounds(one.units)) is not None:
        return bounds
    where = f" of {one.module}" if one.module else ""
    count = len(own.shares)
    if one.units < count:
        remedy = f"give at most {one.units} parts"
    else:
        near = [one.units * (i + 1) // count - one.units * i // count for i in range(count)]
        remedy = f"give shares that add up to {one.units}, such as {':'.join(map(str, near))}"
    raise SituateError(
        f"cuts {own}: the {one.kind}{where} are {one.units} units, which these shares do not "
        f"divide: {remedy}"
    )
