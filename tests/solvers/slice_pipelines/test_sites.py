"""Sites of stages: devices, and teams of devices with a part each."""

from __future__ import annotations

import numpy as np
import pytest

from situate import Cluster, Graph, Problem
from situate.data.cuts import parse_cuts
from situate.data.graph import Op
from situate.errors import SituateError
from situate.solvers.slice_pipelines.sites import Sites, part_of_units
from tests.solvers.families import chain, devices
from tests.solvers.parts import step, training


def teams(graph: Graph, count: int = 4) -> Sites:
    return Sites.of(Problem(graph, Cluster.find(f"identical:{count}")))


# A site is an accelerator, or as many neighbours as there are parts.
def test_whole_ops_have_accelerators() -> None:
    sites = Sites.of(Problem(chain(3), devices(1, 2)))
    assert sites.teams.tolist() == [[0], [1]]


def test_parts_have_teams() -> None:
    assert teams(step(2)).teams.tolist() == [[0, 1], [2, 3]]


def test_more_parts_than_devices_are_one_team() -> None:
    assert teams(step(4), 2).teams.tolist() == [[0, 1, 0, 1]]


def test_a_step_of_whole_ops_has_no_parts() -> None:
    with pytest.raises(SituateError, match="has whole ops: give --cuts"):
        part_of_units(Problem(chain(3), devices(1)))


# Seconds and bytes of a team are those of its slowest and fullest device.
def test_a_row_of_parts_delays_a_team_by_the_mean_of_its_parts() -> None:
    assert teams(step(2, longest=3)).seconds().sum(axis=0).tolist() == [2, 2]


def test_a_team_has_the_memory_of_its_devices() -> None:
    sites = Sites.of(Problem(step(2), devices(1, 1, 1, 1, memory=10)))
    assert sites.capacity.tolist() == [20, 20]
    assert sites.of_fullest(np.array([1, 5, 2, 2])).tolist() == [10, 4]


# Units at sites are on the devices of their parts.
def test_parts_are_on_the_devices_of_their_team() -> None:
    sites = teams(training(2, 2))
    names = [op.name for op in sites.problem.graph.ops]
    modules = [op.module for op in sites.problem.graph.ops]
    site = np.array([int(modules[op] == "layer1") for op in _first_ops(sites.problem)])
    placement = dict(zip(names, sites.placement(site).tolist(), strict=True))
    assert [
        placement[name] for name in ("0/forward0/0", "0/late0/1", "0/forward1/0", "0/update1/1")
    ] == [
        0,
        1,
        2,
        3,
    ]


def test_whole_parameters_are_spread_over_their_team() -> None:
    ops = (
        *(Op(f"op{k}", seconds={"*": 1.0}, part=k) for k in range(2)),
        *(Op(f"w{k}", seconds={"*": 0.0}, persistent=4) for k in range(4)),
    )
    sites = teams(Graph("whole parameters", ops, cuts=parse_cuts(["features=2"])))
    placement = sites.placement(np.array([0, 0, 0, 0, 1, 1]))
    assert sorted(placement[2:].tolist()) == [0, 1, 2, 3]


def _first_ops(problem: Problem) -> list[int]:
    """(units,) the first op of each unit."""
    return [int(np.flatnonzero(problem.unit == u)[0]) for u in range(problem.units)]
