"""Problems by name, and what others have found or proved of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from msgspec import structs

from situate.data.problem import Problem, Rules


@dataclass(frozen=True)
class Known:
    """A published value of a problem.

    Attributes:
        value: of the objective, in the graph's unit.
        source: who found it.
        bound: no plan has a smaller value, as the source proves; None where it does not.
    """

    value: float
    source: str
    bound: float | None = None


@dataclass(frozen=True)
class Instance:
    """A problem of a family, made when it is needed.

    Attributes:
        family, name: together they name the instance.
        make: builds the problem; raises SituateError where that is not possible.
        known: what is published of it.
    """

    family: str
    name: str
    make: Callable[[], Problem]
    known: Known | None = None


def problem_hash(problem: Problem) -> str:
    """SHA-256 of all that the values of plans depend on, in hexadecimal: graph, cluster, objective,
    measured costs and the rules' settings."""
    costs = problem.costs.hash if problem.costs else ""
    settings = _settings(problem.rules)
    content = (problem.graph.hash, problem.cluster.hash, settings, problem.objective, costs)
    return hashlib.sha256(msgspec.msgpack.encode(content)).hexdigest()


def _settings(rules: Rules) -> dict[str, str | bool]:
    """Those that are not as in situate's own rules: a setting that comes to be changes no other
    rules."""
    plain = structs.asdict(Rules(rules.name))
    return {name: value for name, value in structs.asdict(rules).items() if value != plain[name]}
