"""Names on the command line: their checks, and their completions by a shell.

Shells complete names of files by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from situate.errors import SituateError, nearest

if TYPE_CHECKING:
    from situate.data.problem import Objective

Completion = Callable[[str], list[str]]


def check_name(name: str, names: Collection[str], kind: str) -> None:
    """
    Raises:
        SituateError: the name is not one of `names`.
    """
    if name not in names:
        raise SituateError(f"unknown {kind} {name!r}{nearest(name, names)}")


def check_method(name: str) -> None:
    """
    Raises:
        SituateError: no method has that name.
    """
    from situate.solvers import METHODS

    check_name(name, METHODS, "method")


def find_objective(name: str) -> Objective:
    """The objective of that name.

    Raises:
        SituateError: there is none.
    """
    from situate.data.problem import OBJECTIVES

    check_name(name, OBJECTIVES, "objective")
    return next(objective for objective in OBJECTIVES if objective == name)


def complete(names: Callable[[], Iterable[str]]) -> Completion:
    """A completion by the names that begin with the typed text."""

    def completion(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return completion


def complete_words(*words: str) -> Completion:
    """A completion by a few fixed words."""
    return complete(lambda: words)


def complete_list(names: Callable[[], Iterable[str]]) -> Completion:
    """A completion of the last of several names between commas."""

    def completion(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + name for name in complete(names)(last)]

    return completion


def networks() -> list[str]:
    """Networks of the zoo."""
    from situate.zoo import names

    return names()


def presets() -> list[str]:
    """Presets of clusters."""
    from situate.data.cluster import Cluster

    return Cluster.presets()


def objectives() -> Iterable[str]:
    """Objectives of a search."""
    from situate.data.problem import OBJECTIVES

    return OBJECTIVES


def rules() -> Iterable[str]:
    """Rules of execution."""
    from situate.data.rules import RULES

    return RULES


def methods() -> Iterable[str]:
    """Methods of planning."""
    from situate.solvers import METHODS

    return METHODS


def groupings() -> Iterable[str]:
    """Grouping rules of learners."""
    from situate.grouping import GROUPINGS

    return GROUPINGS


def families() -> Iterable[str]:
    """Families of `bench`."""
    from situate.bench.families import FAMILIES

    return FAMILIES


def contenders() -> Iterable[str]:
    """Methods, and the peers of `bench`."""
    from situate.bench.peers import PEERS

    return [*methods(), *PEERS]
