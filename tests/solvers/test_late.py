"""Late orders, and sources without work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import OBJECTIVES, Problem
from situate.solvers import solve
from situate.solvers.evaluate import evaluate
from situate.solvers.late import Lateness, idle_sources
from tests.solvers.families import devices
from tests.solvers.programs import needs_scotch

LAYERS, PACKED, UNPACKED = 8, 1, 10


def quantised(source: str = "input") -> Graph:
    """Layers with weights of a byte that take ten when they are unpacked, which is in the file all
    done before the data comes in."""
    n = LAYERS
    ops = [Op(f"packed{i}", "parameter", seconds={"*": 0.0}, persistent=PACKED) for i in range(n)]
    ops += [Op(f"unpack{i}", seconds={"*": 0.1}) for i in range(n)]
    ops += [Op("x", source, seconds={"*": 0.0})]
    ops += [Op(f"layer{i}", seconds={"*": 1.0}) for i in range(n)]
    tensors = [Tensor(f"w{i}", i, PACKED, (n + i,), resident=True) for i in range(n)]
    tensors += [Tensor(f"u{i}", n + i, UNPACKED, (2 * n + 1 + i,)) for i in range(n)]
    tensors += [Tensor(f"a{i}", 2 * n + i, 1, (2 * n + 1 + i,)) for i in range(n)]
    return Graph("quantised", tuple(ops), tuple(tensors))


def _problem(cluster: Cluster, objective: Any = "time", source: str = "input") -> Problem:
    return Problem(quantised(source), cluster, objective)


def _stages(problem: Problem, count: int) -> np.ndarray:
    """(n,) as many layers, with their weights, on one device as on another."""
    layer = [int(op.name.lstrip("packedunlyrx") or 0) for op in problem.graph.ops]
    return np.array(layer, np.int32) * count // LAYERS


# Ops that depend on weights alone run when it is first needed.
@pytest.mark.parametrize("source", ["input", "op"])
def test_what_weights_alone_make_follows_its_first_reader(source: str) -> None:
    """Data enters by inputs; in a graph without any by ops that read and hold nothing."""
    problem = _problem(devices(1), source=source)
    late = Lateness(problem)
    names = [op.name for op in problem.graph.ops]
    put_off = [name for name, off in zip(names, late.without_data, strict=True) if off]
    assert put_off == names[: 2 * LAYERS]
    order = late.order(np.arange(problem.n, dtype=np.int32))
    assert [names[op] for op in order[:7]] == [
        *("x", "layer0", "packed0", "unpack0", "layer1", "packed1", "unpack1")
    ]


def test_what_data_reaches_keeps_its_order() -> None:
    problem = _problem(devices(1))
    late = Lateness(problem)
    order = np.random.default_rng(1).permutation(problem.n).astype(np.int32)
    put_off = late.without_data
    moved = late.order(order)
    assert sorted(moved) == list(range(problem.n))
    assert moved[~put_off[moved]].tolist() == order[~put_off[order]].tolist()
    assert np.array_equal(late.order(moved), moved)


def test_what_nothing_reads_keeps_its_place() -> None:
    ops = [Op("w", "parameter", persistent=1), Op("x", "input"), Op("b", "buffer", persistent=1)]
    ops += [Op("y", seconds={"*": 1.0})]
    tensors = [Tensor("tw", 0, 1, (3,), resident=True), Tensor("tx", 1, 1, (3,))]
    graph = Graph("unread", tuple(ops), tuple(tensors))
    late = Lateness(Problem(graph, devices(1)))
    assert late.order(np.arange(4, dtype=np.int32)).tolist() == [1, 2, 3, 0]


def test_without_data_nothing_is_put_off() -> None:
    ops = tuple(
        Op(name, persistent=held) for name, held in (("w", 1), ("a", 0), ("v", 1), ("b", 0))
    )
    tensors = (Tensor("tw", 0, 1, (1,)), Tensor("ta", 1, 1, (3,)), Tensor("tv", 2, 1, (3,)))
    problem = Problem(Graph("weights", ops, tensors), devices(1))
    assert not Lateness(problem).without_data.any()


def test_what_data_must_come_before_is_not_put_off() -> None:
    """A control edge is a dependence too."""
    ops = (Op("w", "parameter", persistent=1), Op("x", "input"), Op("u"), Op("y"))
    tensors = (Tensor("tw", 0, 1, (2,), resident=True), Tensor("tu", 2, 1, (3,)))
    problem = Problem(Graph("after", ops, tensors, ((1, 2),)), devices(1))
    assert Lateness(problem).without_data.tolist() == [True, False, False, False]


@pytest.mark.parametrize("method", ["pipeline", "single", "topological", "heft", "etf", "auto"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_methods_unpack_one_weight_at_a_time_where_memory_counts(
    method: str, objective: str
) -> None:
    """A device that holds the weights has room for one that is unpacked, and little else."""
    room = LAYERS * PACKED + UNPACKED + 3
    result = solve(_problem(devices(1, 1, memory=room), objective), method, evaluations=600)
    assert result.feasible
    result.schedule.verify(result.problem)


@pytest.mark.parametrize("method", ["random", "metis", pytest.param("mincut", marks=needs_scotch)])
def test_methods_that_cut_anywhere_keep_less_too(method: str) -> None:
    tight = _problem(devices(1, 1), "memory")
    in_graph_order = solve(tight, method, evaluations=400)
    assert max(in_graph_order.peak_memory.values()) <= LAYERS * PACKED + 3 * UNPACKED


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_placement_from_outside_unpacks_late_where_it_would_not_fit(count: int) -> None:
    room = LAYERS * PACKED // count + UNPACKED + 3
    problem = _problem(devices(*[1] * count, memory=room))
    given = evaluate(problem, _stages(problem, count))
    assert given.feasible
    given.schedule.verify(problem)
    assert given.plan.schedule(problem).peak.tolist() == given.schedule.peak.tolist()


def test_where_everything_fits_the_order_stays() -> None:
    problem = _problem(devices(1, 1))
    given = evaluate(problem, _stages(problem, 2))
    assert given.order.tolist() == list(problem.graph.order)
    assert given.evaluations == 2


# Sources without work read nothing and take no time.
def test_a_source_is_idle_where_it_takes_no_time_on_any_device() -> None:
    ops = (
        Op("parameter", seconds={"*": 0.0}),
        Op("on one device alone", seconds={"d1": 0.0}),
        Op("works", seconds={"d0": 0.0, "d1": 1.0}),
        Op("reads", seconds={"*": 0.0}),
    )
    graph = Graph("g", ops, (Tensor("t", 0, 1, (3,)),))
    assert idle_sources(Problem(graph, devices(1, 1))).tolist() == [True, True, False, False]


def test_what_waits_is_no_source() -> None:
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 0.0}))
    graph = Graph("g", ops, control=((0, 1),))
    assert not idle_sources(Problem(graph, devices(1, 1))).any()
