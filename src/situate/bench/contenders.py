"""Situate's methods and other people's programs, by name."""

from __future__ import annotations

from situate.bench.peers import PEERS
from situate.data.problem import Problem
from situate.errors import SituateError, nearest
from situate.results.result import Result
from situate.solvers import METHODS, solve


def check_contenders(names: list[str]) -> None:
    """Raise for a name that is neither a method nor a peer, and for one that lacks its packages.

    Raises:
        SituateError: unknown name.
        MissingExtra: a peer's packages are not there; says how to install them.
    """
    for name in names:
        if name not in METHODS and name not in PEERS:
            raise SituateError(f"unknown method {name!r}{nearest(name, {*METHODS, *PEERS})}")
        if name in PEERS:
            PEERS[name].check()


def solve_with(problem: Problem, name: str, time_limit: float, seed: int, threads: int) -> Result:
    """The best plan of a method or a peer.

    Raises:
        SituateError: it does not apply to the problem, or finds no plan.
    """
    method = PEERS[name].solve if name in PEERS else solve
    return method(problem, name, time_limit=time_limit, seed=seed, threads=threads)
