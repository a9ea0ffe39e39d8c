"""`prefix`: ops whose names share their first two levels, as Spotlight groups them.

Y. Gao, L. Chen, B. Li, *Spotlight: Optimizing Device Placement for Training Deep Neural Networks*,
ICML 2018: "Group all the operations that share the same two-level prefix into a super operation".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from situate.data.graph import Graph, Op
from situate.data.problem import Problem
from situate.grouping.units import unit_labels

LEVELS = 2

Prefix = tuple[str, ...]


def labels(problem: Problem, count: int) -> NDArray[np.int64]:
    """Labels (units,) by the prefix of the unit's first op; an op outside of any module or scope
    is alone. `count` does not matter."""
    return unit_labels(problem, [prefix or j for j, prefix in enumerate(prefixes(problem.graph))])


def prefixes(graph: Graph) -> list[Prefix]:
    """The first two levels of every op.

    If more than half of all ops share them, as in a network within a network, these ops have one
    level more, and so on.
    """
    scopes = {scope for op in graph.ops if not op.module for scope in _scopes(op.name)}
    paths = [levels(op, scopes) for op in graph.ops]
    result = [path[:LEVELS] for path in paths]
    while True:
        widest, ops = Counter(result).most_common(1)[0]
        deeper = [j for j, prefix in enumerate(result) if prefix == widest != paths[j]]
        if 2 * ops <= len(paths) or not deeper:
            return result
        for j in deeper:
            result[j] = paths[j][: len(widest) + 1]


def levels(op: Op, scopes: Collection[str] = ()) -> Prefix:
    """The modules or name scopes around an op, the outermost first.

    They come from its module path or, without one, from its name, whose last part is the op's own
    unless the name is a scope of others: `conv1/weights` is one of `conv1/weights/read`, and in it.
    A number belongs to the level before it: the tenth block of `h` is the level `h.9`, as it would
    be the scope `h9` in TensorFlow.

    Args:
        scopes: names that are scopes of other ops' names.
    """
    if op.module:
        return tuple(_merged_parts(op.module.split(".")))
    parts = op.name.split(_separator(op.name))
    return tuple(_merged_parts(parts if op.name in scopes else parts[:-1]))


def _separator(name: str) -> str:
    return "/" if "/" in name else "."


def _scopes(name: str) -> Iterator[str]:
    """All scopes around a name, from the outermost on."""
    separator = _separator(name)
    return accumulate(name.split(separator)[:-1], f"{{}}{separator}{{}}".format)


def _merged_parts(parts: Iterable[str]) -> list[str]:
    result: list[str] = []
    for part in parts:
        if part.isdecimal() and result:
            result[-1] += f".{part}"
        elif part:
            result.append(part)
    return result
