"""The choice of cuts for a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate import Cluster, Graph, Problem, solve
from situate.data.cuts import Cuts, parse_cuts
from situate.data.graph import Op
from situate.errors import SituateError
from situate.solvers.cut_choice import CutStep, candidates, choose_cuts, least_seconds

UNITS = {"heads": [8, 8], "features": [24], "sequence": [16]}


def problem(cuts: Cuts | None, cluster: str = "identical:4", price: float = 0.0) -> Problem:
    """One op of 8 seconds, or its parts, which take `price` more each."""
    count = len(cuts.cuts[0].shares) if cuts else 1
    parts = [None] if cuts is None else range(count)
    ops = [
        Op(f"op{k}", seconds={"*": 8 / count + price * (cuts is not None)}, part=k) for k in parts
    ]
    return Problem(Graph("step", tuple(ops), cuts=cuts), Cluster.find(cluster))


def tried(cluster: str) -> list[str]:
    return [str(cuts) for cuts in candidates(problem(None, cluster), UNITS)]


# All devices, and teams of them; kinds with parameters alone, with the sequence, and this alone.
def test_candidates_are_teams_of_the_devices() -> None:
    assert tried("identical:4") == [
        "heads=4, features=4, sequence=4",
        "heads=4, features=4",
        "sequence=4",
        "sequence=4, heads=4, features=4",
        "heads=2, features=2, sequence=2",
        "heads=2, features=2",
        "sequence=2",
        "sequence=2, heads=2, features=2",
    ]


def test_kinds_that_cannot_have_so_many_parts_are_left_out() -> None:
    assert "features=3, heads=3" not in tried("identical:3")
    assert tried("identical:3") == ["features=3"]


def test_unequal_devices_have_shares_by_speed_too() -> None:
    ops = (Op("op", flops=10**12),)
    unequal = Problem(Graph("step", ops), Cluster.find("unequal-24-12"))
    shares = [cuts for cuts in candidates(unequal, UNITS) if len(set(cuts.cuts[0].shares)) > 1]
    assert shares
    assert sum(shares[0].cuts[0].shares) <= 8


# The best plan decides, and whole ops stay where no cut pays.
def test_the_cuts_with_the_shortest_step_are_chosen() -> None:
    chosen = choose_cuts(CutStep(problem, UNITS)).problem
    assert len(chosen.graph.cuts.cuts[0].shares) == 4


def test_ops_stay_whole_where_no_cut_pays() -> None:
    assert (
        choose_cuts(CutStep(lambda cuts: problem(cuts, price=9.0), UNITS)).problem.graph.cuts
        is None
    )


def test_a_step_with_nothing_to_cut_is_refused() -> None:
    with pytest.raises(SituateError, match="no dimension to cut"):
        choose_cuts(CutStep(problem, {}))


def test_cuts_that_a_step_refuses_are_left_out() -> None:
    def fussy(cuts: Cuts | None) -> Problem:
        if cuts is not None and len(cuts.cuts[0].shares) == 4:
            raise SituateError("no four parts")
        return problem(cuts)

    assert choose_cuts(CutStep(fussy, UNITS)).problem.graph.cuts in (
        parse_cuts(["heads=2", "features=2"]),
        parse_cuts(["heads=2", "features=2", "sequence=2"]),
        parse_cuts(["sequence=2"]),
    )


# No cut makes a step shorter than the load of the devices.
def test_no_plan_of_any_cut_is_below_the_least_seconds() -> None:
    least = least_seconds(problem(None))
    assert least == pytest.approx(2.0)
    for cuts in candidates(problem(None), UNITS):
        assert solve(problem(cuts), evaluations=50).value >= least - 1e-9


def test_other_objectives_have_no_least_seconds() -> None:
    assert least_seconds(replace(problem(None), objective="memory")) == 0.0


def test_a_large_step_is_cut_in_fewer_ways(monkeypatch) -> None:
    tried = []

    def counted(cuts: Cuts | None) -> Problem:
        tried.append(cuts)
        return problem(cuts)

    choose_cuts(CutStep(counted, UNITS))
    every = len(tried)
    tried.clear()
    monkeypatch.setattr("situate.solvers.cut_choice.MOST_OPS", 8)
    choose_cuts(CutStep(counted, UNITS))
    assert 0 < len(tried) < every
