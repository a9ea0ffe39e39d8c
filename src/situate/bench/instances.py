"""Problems by name, and values that others have found or proved."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from msgspec import structs

from situate.bench.shardings import AnySharding, sharding_hash
from situate.data.problem import Problem
from situate.data.rules import Rules

AnyProblem = Problem | AnySharding


@dataclass(frozen=True)
class ReferenceValue:
    """A published value of a problem.

    Attributes:
        value: of the objective, in the graph's unit.
        source: paper or program of the value.
        bound: lower bound that the source proves; None if it proves none.
    """

    value: float
    source: str
    bound: float | None = None


@dataclass(frozen=True)
class Instance:
    """A problem of a family, built on demand.

    Attributes:
        family, name: together they identify the instance.
        make: builds the problem; raises SituateError if that is not possible.
        reference: its published value, if any.
        time_limit: seconds that its publisher gives a solver, if any.
    """

    family: str
    name: str
    make: Callable[[], AnyProblem]
    reference: ReferenceValue | None = None
    time_limit: float | None = None


def problem_hash(problem: AnyProblem) -> str:
    """SHA-256 in hexadecimal of graph, cluster, objective, measured costs and the rules' settings.

    The values of plans depend on nothing else. Of a sharding problem it is that of its content.
    """
    if not isinstance(problem, Problem):
        return sharding_hash(problem)
    costs = problem.costs.hash if problem.costs else ""
    settings = _settings(problem.rules)
    content = (problem.graph.hash, problem.cluster.hash, settings, problem.objective, costs)
    return hashlib.sha256(msgspec.msgpack.encode(content)).hexdigest()


def _settings(rules: Rules) -> dict[str, str | bool]:
    """Settings that differ from situate's own rules, so that a new setting keeps old hashes."""
    plain = structs.asdict(Rules(rules.name))
    return {name: value for name, value in structs.asdict(rules).items() if value != plain[name]}
