"""Plans of parts with collectives in place of their exchanges."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.problem import Problem
from situate.language.training.collectives import (
    START,
    exchange_seconds,
    gather_seconds,
    reduce_seconds,
)
from situate.language.training.machine import find_machine
from situate.schedule.schedule import Schedule
from situate.simulation.collectives import in_collectives
from situate.simulation.decoding import decode
from tests.oracle.simulator import simulate
from tests.simulation.exchanged import SIZE, exchanged
from tests.solvers.families import chain, devices
from tests.writers.cuts.planned import MEGATRON, captured

FLOPS, LINK = {"float32": 1e12}, (Link("*", "*", 5e10),)

NODE = Cluster.find("h100-8")
SEVERAL = Cluster.find("h100-2x8")


def planned(graph, cluster: Cluster = NODE, stride: int = 1) -> tuple[Problem, Schedule]:
    """A plan with part k on the k-th device of a team."""
    problem = Problem(graph, cluster)
    placement = np.array([stride * (op.part or 0) for op in graph.ops], np.int32)
    return problem, decode(problem, placement, np.arange(problem.n, dtype=np.int32), "eager")


def seconds_of(kind: str, parts: int, cluster: Cluster = NODE, stride: int = 1) -> float:
    step = in_collectives(*planned(exchanged(kind, parts), cluster, stride))
    assert step is not None
    [seconds] = step.seconds
    return seconds


# A collective takes the seconds of the layouts' table, for the size of the whole tensor.
@pytest.mark.parametrize("parts", [2, 4, 8])
def test_a_collective_takes_the_seconds_of_its_table(parts: int) -> None:
    machine, size, one = find_machine("h100-8"), np.full(1, float(parts)), np.ones(1)
    gather = gather_seconds(machine, size, one, float(SIZE))[0]
    assert seconds_of("all_gather", parts) == gather
    assert seconds_of("reduce_scatter", parts) == gather
    assert seconds_of("all_reduce", parts) == reduce_seconds(machine, size, one, float(SIZE))[0]
    given = np.full(1, SIZE / parts)
    assert seconds_of("all_to_all", parts) == START + exchange_seconds(machine, size, given, 1)


def test_teams_over_two_nodes_wait_for_the_network() -> None:
    assert seconds_of("all_reduce", 2, SEVERAL, 8) > 2 * seconds_of("all_reduce", 2, SEVERAL)


# The step with collectives is a problem like any other.
@pytest.mark.parametrize(
    "cuts", [MEGATRON, ("heads=4", "features=4", "vocabulary=4", "sequence=4")]
)
@pytest.mark.parametrize("build", ["decoder", "llama"])
def test_a_step_in_collectives_is_valid(build: str, cuts: tuple[str, ...]) -> None:
    if build == "llama" and cuts != MEGATRON:
        pytest.skip("two heads of keys and values are no four parts")
    problem, schedule = planned(captured(build, *cuts))
    step = in_collectives(problem, schedule)
    assert step is not None
    step.schedule.verify(step.problem, allow_overflow=True)
    replaced = {kind.replace("reduce_scatter", "all_gather") for kind in step.kinds}
    assert replaced == {"all_gather"}
    assert step.problem.graph.cut_parameters == problem.graph.cut_parameters


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce", "all_to_all"])
def test_a_step_in_collectives_is_timed_as_the_oracle_has_it(kind: str) -> None:
    step = in_collectives(*planned(exchanged(kind, 4)))
    assert step is not None
    priority = np.arange(step.problem.n, 0, -1, dtype=np.float32)
    order = np.arange(step.problem.n, dtype=np.int32)
    own = decode(step.problem, step.schedule.placement, order, "eager")
    oracle = simulate(step.problem, step.schedule.placement, priority)
    assert own.makespan == oracle.makespan


def test_a_collective_begins_with_the_last_source_and_makes_one_result_a_part() -> None:
    graph = exchanged("all_reduce", 3, readers=2)
    step = in_collectives(*planned(graph))
    assert step is not None
    ops = step.problem.graph.ops
    own = [j for j, op in enumerate(ops) if op.kind == "collective.all_reduce"]
    sources = [j for j, op in enumerate(ops) if op.name.startswith("source")]
    assert [ops[j].part for j in own] == [0, 1, 2]
    begin = max(step.schedule.end[sources])
    assert step.schedule.start[own].tolist() == [begin] * 3
    assert not len(step.schedule.tensor[step.problem.size[step.schedule.tensor] > 0])
    readers = [t.consumers for t in step.problem.graph.tensors if t.producer in own]
    assert [len(r) for r in readers] == [2, 2, 2]


# A plan without such exchanges has none.
def test_parts_that_share_a_device_keep_their_ops() -> None:
    assert in_collectives(*planned(exchanged("all_reduce", 4), stride=0)) is None


def test_unequal_links_have_no_table() -> None:
    assert in_collectives(*planned(exchanged("all_reduce", 4), Cluster.find("v100-4"))) is None


def test_clusters_of_cpus_have_no_table() -> None:
    cpus = Cluster("cpus", (Device("a", "cpu", flops=FLOPS), Device("b", "cpu", flops=FLOPS)), LINK)
    assert in_collectives(*planned(exchanged("all_reduce", 2), cpus)) is None


def test_steps_of_whole_ops_are_left_as_they_are() -> None:
    problem = Problem(chain(2), devices(1.0, 1.0))
    placement, order = np.array([0, 1], np.int32), np.arange(2, dtype=np.int32)
    assert in_collectives(problem, decode(problem, placement, order, "eager")) is None
