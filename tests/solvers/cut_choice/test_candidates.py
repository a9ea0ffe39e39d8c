"""Candidates for the cuts of a step."""

from __future__ import annotations

from situate import Cluster, Graph, Problem
from situate.data.cuts import parse_cuts
from situate.data.graph import Op
from situate.solvers.cut_choice.candidates import candidates
from situate.solvers.cut_choice.divisions import Division, divisions

UNITS = {"heads": [8, 8], "features": [24], "sequence": [16]}

STEP = Graph("step", (Op("op", flops=10**12),))


def tried(cluster: str) -> list[str]:
    return [
        str(cuts) for cuts in candidates(divisions(Problem(STEP, Cluster.find(cluster))), UNITS)
    ]


# All devices, and teams of them; kinds with parameters with the sequence, without it, and alone.
def test_candidates_are_teams_of_the_devices() -> None:
    assert tried("v100-4") == [
        "heads=4, features=4, sequence=4",
        "heads=4, features=4",
        "sequence=4",
        "sequence=4, heads=4, features=4",
        "heads=4",
        "features=4",
        "heads=2, features=2, sequence=2",
        "heads=2, features=2",
        "sequence=2",
        "sequence=2, heads=2, features=2",
        "heads=2",
        "features=2",
    ]


def test_kinds_that_cannot_have_so_many_parts_are_left_out() -> None:
    step = Graph("step", (Op("op", seconds={"*": 8.0}),))
    cuts = [*candidates(divisions(Problem(step, Cluster.identical(3))), UNITS)]
    assert cuts == [parse_cuts(["features=3"])]


# An RTX 3090 is 2.8 times as fast as an RTX 3060.
def test_unequal_devices_have_shares_by_speed_first() -> None:
    assert tried("unequal-24-12")[:3] == [
        "heads=3:1, features=3:1, sequence=3:1",
        "heads=3:1, features=3:1",
        "sequence=3:1",
    ]


# Layers are data parallel around experts; large tables are in parts where layers are shared whole.
def test_experts_and_tables_stand_beside_the_batch() -> None:
    units = {"experts": [8], "features": [8], "vocabulary": [8], "batch": [8]}
    texts = [str(cuts) for cuts in candidates([Division.equal(2)], units)]
    assert "experts=2, batch=2, features=2, vocabulary=2" in texts
    assert "experts=2, batch=2, vocabulary=2" in texts


def test_tables_stand_beside_the_batch_without_experts() -> None:
    units = {"features": [8], "vocabulary": [8], "batch": [8]}
    texts = [str(cuts) for cuts in candidates([Division.equal(2)], units)]
    assert "batch=2, vocabulary=2" in texts
    assert len(texts) == len(set(texts))
