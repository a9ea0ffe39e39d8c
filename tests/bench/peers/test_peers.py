"""Peers: bounded, timed and judged as methods are."""

from __future__ import annotations

import pytest

from situate.bench import peers
from situate.bench.peers import PEERS, Peer
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers import solve
from tests.bench.small import instance
from tests.bounds.test_paths import sums
from tests.solvers.families import devices

PROBLEM = instance().make()


def failing(error: BaseException):
    """A module whose `run` raises."""

    class Module:
        @staticmethod
        def run(search):
            raise error

    return lambda name: Module


def test_whatever_a_peer_raises_says_its_name(monkeypatch):
    monkeypatch.setattr(peers, "import_module", failing(RuntimeError("broken\ninside")))
    with pytest.raises(SituateError, match=r"accelerate: RuntimeError: broken\\ninside"):
        PEERS["accelerate"].solve(PROBLEM, "accelerate", time_limit=0.1, seed=0, threads=1)


def test_a_peer_may_say_that_it_does_not_apply(monkeypatch):
    monkeypatch.setattr(peers, "import_module", failing(SituateError("not this one")))
    with pytest.raises(SituateError, match=r"^not this one"):
        PEERS["accelerate"].solve(PROBLEM, "accelerate", time_limit=0.1, seed=0, threads=1)


def test_ctrl_c_goes_through_a_peer(monkeypatch):
    monkeypatch.setattr(peers, "import_module", failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        PEERS["accelerate"].solve(PROBLEM, "accelerate", time_limit=0.1, seed=0, threads=1)


def test_packages_that_are_there_are_no_error():
    Peer("numbers", "", ("numpy",), "", "").check()
    with pytest.raises(SituateError, match=r"numbers: needs no_such, which is not installed: x"):
        Peer("numbers", "", ("numpy", "no_such"), "x", "").check()


def test_a_peer_has_the_bound_of_a_method_with_the_same_time():
    """Both leave out bounds that take long, here the joins, where time is short."""
    problem = Problem(sums(size=100), devices(*[1] * 8))
    peer = Peer("heft", "situate.solvers.heuristics.list_rules:heft", (), "", "")
    for limit in (0.1, 60.0):
        ours = solve(problem, "heft", time_limit=limit)
        theirs = peer.solve(problem, "heft", time_limit=limit, seed=0, threads=1)
        assert (theirs.lower_bound, theirs.bounded_by) == (ours.lower_bound, ours.bounded_by)
