"""List rules: each op goes to the device that the published rule names."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from situate import _core
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import MissingExtra
from situate.simulation.simulator import Simulator
from situate.solvers import solve
from situate.solvers.heuristics.list_rules import (
    MEMORY_SHARES,
    _offer_until_it_fits,
    offer_earliest,
)
from situate.solvers.incumbent import Candidate
from situate.solvers.search import Search
from tests.solvers.families import apart, chain, devices, fork, layered
from tests.solvers.programs import needs_highs

SECONDS = (
    (14, 16, 9), (13, 19, 18), (11, 13, 19), (13, 8, 17), (12, 13, 10),
    (13, 16, 9), (7, 15, 11), (5, 11, 14), (18, 12, 20), (21, 7, 16),
)  # fmt: skip
EDGES = (
    (1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16), (3, 7, 23),
    (4, 8, 27), (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11), (9, 10, 13),
)  # fmt: skip
RANKS = (108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667)


def _papers_example() -> Problem:
    """Topcuoglu et al., Fig. 2: transfers cost the same between any two of three processors."""
    ops = tuple(
        Op(f"n{j + 1}", seconds={f"p{d + 1}": float(s) for d, s in enumerate(row)})
        for j, row in enumerate(SECONDS)
    )
    tensors = tuple(
        Tensor(f"{a}-{b}", a - 1, 1, (b - 1,), seconds=float(cost)) for a, b, cost in EDGES
    )
    cluster = Cluster("three", tuple(Device(f"p{d}") for d in (1, 2, 3)), (Link("*", "*", 1.0),))
    return Problem(Graph("paper", ops, tensors), cluster, "time", "doppler")  # type: ignore[arg-type]


# `heft` on the example of its paper, and beside hand-made cases.
def test_upward_ranks_are_the_papers() -> None:
    ranks = _core.search.upward_rank(Simulator(_papers_example()).core)
    assert ranks == pytest.approx(RANKS, abs=1e-3)


def test_the_papers_example_ends_no_later_than_in_the_paper() -> None:
    """80 in the paper with insertion into gaps; 86 with its order and without insertion."""
    result = solve(_papers_example(), "heft")
    assert 54 <= result.value <= 86


def test_a_chain_stays_on_the_fast_device() -> None:
    result = solve(Problem(chain(6), devices(2, 1)), "heft")
    assert result.placement.tolist() == [1] * 6


def test_equal_devices_share_equal_work() -> None:
    result = solve(Problem(apart(8), devices(1, 1)), "heft")
    assert result.value == 4
    assert result.gap == 0


def test_a_slow_device_helps_where_it_ends_sooner() -> None:
    result = solve(Problem(apart(3), devices(1, 2)), "heft")
    assert result.value == 2
    assert np.bincount(result.placement).tolist() == [2, 1]


def test_dear_transfers_keep_ops_together() -> None:
    assert solve(Problem(fork(5, size=1000), devices(1, 1)), "heft").value == 5


def test_a_full_device_comes_last() -> None:
    problem = Problem(apart(6, persistent=10), devices(1, 1, memory=30))
    result = solve(problem, "heft")
    assert result.feasible
    assert result.schedule.peak.tolist() == [30, 30]


def test_a_group_follows_its_first_op() -> None:
    assert len(set(solve(Problem(apart(5, group="g"), devices(1, 1)), "heft").placement)) == 1


def test_a_parameter_goes_where_its_reader_goes() -> None:
    ops = (
        Op("weight", seconds={"*": 0.0}, persistent=8),
        Op("layer", seconds={"x1": 1.0, "x2": 5.0}),
    )
    graph = Graph("g", ops, (Tensor("w", 0, 8, (1,), resident=True),))
    assert solve(Problem(graph, devices(2, 1)), "heft").placement.tolist() == [1, 1]


# `etf` takes the pair of op and device that can start first.
def test_etf_equal_devices_share_equal_work() -> None:
    assert solve(Problem(apart(8), devices(1, 1)), "etf").value == 4


def test_a_chain_stays_where_it_began() -> None:
    result = solve(Problem(chain(6), devices(1, 1)), "etf")
    assert len(set(result.placement)) == 1
    assert result.value == 6


def test_the_first_start_counts_not_the_first_end() -> None:
    """An idle slow device starts an op at once, though a fast one would end it sooner."""
    result = solve(Problem(apart(2), devices(1, 2)), "etf")
    assert np.bincount(result.placement).tolist() == [1, 1]


def test_a_long_way_is_not_taken_for_a_busy_device() -> None:
    assert solve(Problem(fork(5, size=1000), devices(1, 1)), "etf").value == 5


def test_a_short_one_is() -> None:
    assert solve(Problem(fork(6, size=0), devices(1, 1)), "etf").value == 4


def test_ties_go_to_the_higher_rank() -> None:
    """The op that the rest waits for goes before the one that nothing waits for."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in ("last", "first", "then"))
    problem = Problem(Graph("g", ops, (Tensor("t", 1, 1, (2,)),)), devices(1))
    assert solve(problem, "etf").order[0] == 1


def test_etf_a_full_device_comes_last() -> None:
    result = solve(Problem(apart(6, persistent=10), devices(1, 1, memory=30)), "etf")
    assert result.feasible
    assert result.schedule.peak.tolist() == [30, 30]


def test_a_wide_graph_needs_no_quadratic_scan() -> None:
    """30,000 ready ops at once; a scan of all pairs would not end."""
    result = solve(Problem(apart(30_000), devices(1, 1, 1)), "etf")
    assert result.value == 10_000


def test_every_op_is_placed_once() -> None:
    problem = Problem(layered(30, 20, 1), devices(1, 2, 1))
    result = solve(problem, "etf")
    assert sorted(result.order.tolist()) == list(range(problem.n))
    result.schedule.verify(problem)


# `m_etf` takes the pair of op and accelerator that can start first, of those that fit.
def test_m_etf_equal_devices_share_equal_work() -> None:
    assert solve(Problem(apart(8), devices(1, 1)), "m_etf").value == 4


def test_m_etf_a_chain_stays_where_it_began() -> None:
    result = solve(Problem(chain(6), devices(1, 1)), "m_etf")
    assert len(set(result.placement)) == 1
    assert result.value == 6


def test_ties_go_to_the_graphs_order() -> None:
    """Where `etf` takes the op that the rest waits for."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in ("last", "first", "then"))
    problem = Problem(Graph("g", ops, (Tensor("t", 1, 1, (2,)),)), devices(1))
    assert solve(problem, "m_etf").order[0] == 0


def test_the_slow_cpu_is_left_alone() -> None:
    pair = (Device("gpu", kind="x1"), Device("cpu", kind="cpu"))
    cluster = Cluster("c", pair, (Link("*", "*", 1.0),))
    assert solve(Problem(apart(6), cluster), "m_etf").placement.tolist() == [0] * 6


def test_the_cpu_takes_what_no_gpu_may_run_or_has_room_for() -> None:
    pair = (Device("gpu", kind="x1", memory=40), Device("cpu", kind="cpu", memory=99))
    cluster = Cluster("c", pair, (Link("*", "*", 1.0),))
    read = Op("read", seconds={"cpu": 1.0})
    big = tuple(Op(f"op{j}", seconds={"*": 1.0}, persistent=10) for j in range(6))
    result = solve(Problem(Graph("g", (read, *big)), cluster), "m_etf")
    assert result.feasible
    assert result.placement[0] == 1
    assert np.bincount(result.placement[1:]).tolist() == [4, 2]


def test_an_op_that_does_not_fit_lets_others_go_first() -> None:
    """The first op of the order is too large for d0 once its pinned op is there; the small ones
    are not, and start there at once."""
    ops = (
        Op("pinned", seconds={"*": 1.0}, persistent=60, device="d0"),
        Op("large", seconds={"*": 9.0}, persistent=50),
        Op("larger", seconds={"*": 9.0}, persistent=50),
        *(Op(f"small{j}", seconds={"*": 1.0}, persistent=1) for j in range(3)),
    )
    result = solve(Problem(Graph("g", ops), devices(1, 1, memory=105)), "m_etf")
    assert result.feasible
    assert result.placement.tolist() == [0, 1, 1, 0, 0, 0]
    assert result.schedule.end[3:].max() == 4


def test_freed_memory_is_used_again() -> None:
    """A branch of the fork fits only when the one before has given up its tensors."""
    problem = Problem(chain(40, size=10), devices(1, memory=20))
    assert solve(problem, "m_etf").feasible


def test_a_group_stays_together_and_fits_as_a_whole() -> None:
    ops = tuple(
        Op(f"op{j}", seconds={"*": 1.0}, persistent=10, group="g" if j % 2 else None)
        for j in range(8)
    )
    result = solve(Problem(Graph("g", ops), devices(1, 1, memory=40)), "m_etf")
    assert result.feasible
    assert len(set(result.placement[1::2])) == 1


def test_what_fits_nowhere_goes_where_least_is_lacking() -> None:
    result = solve(Problem(apart(5, persistent=10), devices(1, 1, memory=20)), "m_etf")
    assert not result.feasible
    assert sorted(result.schedule.peak.tolist()) == [20, 30]


def test_a_full_device_is_no_quadratic_scan() -> None:
    """30,000 ready ops, of which d0 has room for one; to look at all of them again for every op
    that is placed would not end."""
    small = (Device("d0", kind="x1", memory=1), Device("d1", kind="x1"))
    problem = Problem(apart(30_000, persistent=1), Cluster("c", small, (Link("*", "*", 1.0),)))
    assert np.bincount(solve(problem, "m_etf").placement).tolist() == [1, 29_999]


def test_m_etf_every_op_is_placed_once() -> None:
    problem = Problem(layered(30, 20, 1), devices(1, 2, 1))
    result = solve(problem, "m_etf")
    assert sorted(result.order.tolist()) == list(range(problem.n))
    result.schedule.verify(problem)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"room": 1.1}, "a share of memory"),
        ({"preferred": np.ones(1, np.uint8)}, "each device is preferred or not"),
        ({"favourite": np.full(5, -1, np.int32)}, "each op has a favourite child"),
        ({"favourite": np.full(6, 6, np.int32)}, "each op has a favourite child"),
        ({"favourite": np.full(6, -2, np.int32)}, "each op has a favourite child"),
    ],
)
def test_the_core_refuses_what_is_not_of_its_problem(
    changes: dict[str, object], message: str
) -> None:
    core = Simulator(Problem(fork(6), devices(1, 1))).core
    given = {
        "room": 1.0,
        "preferred": np.ones(2, np.uint8),
        "favourite": np.full(6, -1, np.int32),
    }
    with pytest.raises(ValueError, match=message):
        _core.search.memory_constrained(core, **(given | changes))  # type: ignore[arg-type]


def test_where_no_device_is_preferred_all_take_what_they_can() -> None:
    core = Simulator(Problem(apart(6), devices(1, 1))).core
    placement, _ = _core.search.memory_constrained(
        core, 1.0, preferred=np.zeros(2, np.uint8), favourite=np.full(6, -1, np.int32)
    )
    assert np.bincount(placement).tolist() == [3, 3]


def with_favourites(problem: Problem, favourites: dict[int, int]) -> Candidate:
    favourite = np.full(problem.n, -1, np.int32)
    for op, child in favourites.items():
        favourite[op] = child
    search = Search(problem)
    offer_earliest(search, favourite)
    return search.incumbent


# `m_sct` lets devices wait for the favourite children of their ops.
def test_no_favourites_are_m_etf() -> None:
    for seed in range(10):
        problem = Problem(layered(6, 6, seed), devices(1, 1, 2))
        result = with_favourites(problem, {})
        assert np.array_equal(result.placement, solve(problem, "m_etf").placement)
        assert np.array_equal(result.order, solve(problem, "m_etf").order)


def waiting(other_on_d1: float) -> Problem:
    """d0 is free at 1 s, and d1 at 5 s. At 4 s d0 can start the child of its first op, d1 not
    before 10 s. Another op of 10 s can start on d0 at 1.5 s, and on d1 when it is free."""
    ops = (
        Op("a", seconds={"*": 1.0}, device="d0"),
        Op("b", seconds={"*": 1.0}, device="d1"),
        Op("child", seconds={"d0": 1.0, "d1": 1.0}),
        Op("source", seconds={"*": 1.0}, device="d2"),
        Op("other", seconds={"d0": 10.0, "d1": 10.0}),
        Op("busy", seconds={"*": other_on_d1 - 1}, device="d1"),
    )
    tensors = (
        Tensor("a", 0, 9, (2,)),
        Tensor("b", 1, 3, (2,)),
        Tensor("s", 3, 1, (4,), seconds=0.5),
    )
    return Problem(Graph("g", ops, tensors), devices(1, 1, 1))


def place_of(op: int, found: Candidate) -> int:
    return found.order.tolist().index(op)


def test_a_device_waits_for_a_favourite_child() -> None:
    """m-ETF starts the other op, and the child goes elsewhere."""
    without, having = (with_favourites(waiting(5), favourites) for favourites in ({}, {0: 2}))
    assert place_of(4, without) < place_of(2, without)
    assert without.placement[[2, 4]].tolist() == [1, 0]
    assert place_of(2, having) < place_of(4, having)
    assert having.placement[2] == 0


def test_what_is_urgent_goes_first() -> None:
    """At 3 s the other op could start on either device."""
    result = with_favourites(waiting(3), {0: 2})
    assert place_of(4, result) < place_of(2, result)
    assert result.placement[4] == 0


def test_a_child_whose_inputs_are_still_made_is_not_waited_for() -> None:
    """b takes until 2 s; at 1.5 s d0 can start the other op."""
    problem = waiting(5)
    ops = list(problem.graph.ops)
    ops[1] = Op("b", seconds={"*": 2.0}, device="d1")
    ops[5] = Op("busy", seconds={"*": 3.0}, device="d1")
    later = Problem(Graph("g", tuple(ops), problem.graph.tensors), problem.cluster)
    result = with_favourites(later, {0: 2})
    assert place_of(4, result) < place_of(2, result)


@needs_highs
def test_m_sct_a_chain_stays_where_it_began() -> None:
    assert solve(Problem(chain(6), devices(1, 1)), "m_sct").value == 6


@needs_highs
def test_fewer_bytes_are_sent_than_by_m_etf() -> None:
    """In the mean over twenty graphs whose transfers take about as long as their ops."""

    def sent(method: str, seed: int) -> int:
        problem = Problem(layered(8, 6, seed, size=2), devices(1, 1, 1))
        return len(solve(problem, method).schedule.tensor)

    seeds = range(20)
    assert sum(sent("m_sct", s) for s in seeds) < sum(sent("m_etf", s) for s in seeds)


@needs_highs
def test_the_same_plan_comes_out_again() -> None:
    problem = Problem(layered(8, 8, 1), devices(1, 1, 2))
    first, second = (solve(problem, "m_sct", evaluations=100) for _ in range(2))
    assert np.array_equal(first.order, second.order)
    assert np.array_equal(first.placement, second.placement)


@needs_highs
def test_without_time_for_the_program_it_is_m_etf() -> None:
    problem = Problem(layered(8, 8, 1), devices(1, 1, 2))
    hurried = solve(problem, "m_sct", time_limit=0)
    assert np.array_equal(hurried.placement, solve(problem, "m_etf").placement)


def test_without_highs_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(MissingExtra, match=r"highspy.*pip install 'situate\[baselines\]'"):
        solve(Problem(chain(6), devices(1, 1)), "m_sct")


def test_a_favourite_that_has_no_room_is_not_waited_for() -> None:
    """The child does not fit beside its parent."""
    ops = (
        Op("a", seconds={"*": 1.0}, persistent=8, device="d0"),
        Op("child", seconds={"*": 1.0}, persistent=8),
    )
    problem = Problem(Graph("g", ops, (Tensor("t", 0, 1, (1,)),)), devices(1, 1, memory=10))
    assert with_favourites(problem, {0: 1}).placement.tolist() == [0, 1]


# A rule whose plan does not fit plans for less room, unless its plan is no shorter than the best.
@pytest.mark.parametrize(
    ("best", "plans"), [(None, len(MEMORY_SHARES)), ([0, 0, 1, 1], 1), ([0, 1, 2, 2], 1)]
)
def test_less_room_is_tried_for_shorter_plans_alone(best: list[int] | None, plans: int) -> None:
    problem = Problem(apart(4, persistent=1), devices(1, 1, 1, memory=2))
    search, order, rooms = Search(problem, threads=1), np.arange(4, dtype=np.int32), list[float]()
    if best is not None:
        search.offer(np.array(best, np.int32), order)

    def three_on_one(room: float) -> tuple[np.ndarray, np.ndarray]:
        rooms.append(room)
        return np.array([0, 0, 0, 1], np.int32), order

    _offer_until_it_fits(search, three_on_one)
    assert len(rooms) == plans


def test_for_memory_less_room_is_always_tried() -> None:
    problem = Problem(apart(4, persistent=1), devices(1, 1, memory=3), "memory")
    search, rooms = Search(problem, threads=1), list[float]()
    order = np.arange(4, dtype=np.int32)
    search.offer(np.array([0, 0, 1, 1], np.int32), order)

    def all_on_one(room: float) -> tuple[np.ndarray, np.ndarray]:
        rooms.append(room)
        return np.zeros(4, np.int32), order

    _offer_until_it_fits(search, all_on_one)
    assert rooms == list(MEMORY_SHARES)
