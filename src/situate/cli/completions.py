"""Shell completions of names; a shell completes files by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Completion = Callable[[str], list[str]]


def of(names: Callable[[], Iterable[str]]) -> Completion:
    """Those of the names that begin with what has been typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def one_after_another(names: Callable[[], Iterable[str]]) -> Completion:
    """The same of the last of several names with commas between them."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + name for name in of(names)(last)]

    return complete


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
    """Ways to plan."""
    from situate.solvers import METHODS

    return METHODS


def groupings() -> Iterable[str]:
    """Rules that say which ops a learner places as one."""
    from situate.grouping import GROUPINGS

    return GROUPINGS


def families() -> Iterable[str]:
    """Families of problems that `bench` runs."""
    from situate.bench.families import FAMILIES

    return FAMILIES


def contenders() -> Iterable[str]:
    """Ways to plan, and the peers that `bench` runs beside them."""
    from situate.bench.peers import PEERS

    return [*methods(), *PEERS]
