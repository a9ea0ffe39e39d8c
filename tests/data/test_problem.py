"""A problem is its graph and cluster as arrays, and rejects ops that no device could run."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.costs import Costs, MeasuredDevice, Timing
from situate.data.graph import Graph, MachineDevice, Op, Tensor
from situate.data.problem import Problem
from situate.data.problem_arrays import UNLIMITED
from situate.data.rules import RULES, Rules
from situate.errors import GraphError, SituateError
from situate.solvers.evaluate import evaluate
from tests.oracle.problems import random_decision, random_problem
from tests.oracle.simulator import simulate

FREE = {"*": 1.0}


def ops(*names: str) -> tuple[Op, ...]:
    return tuple(Op(name, seconds=FREE) for name in names)


def cluster(*devices: Device, **options: object) -> Cluster:
    return Cluster("c", devices, (Link("*", "*", 2e9, 0.5),), **options)


GPU, CPU = Device("gpu0", memory=100), Device("cpu0", kind="cpu", memory=1000)


# Arrays of tensors and control edges, in the types of the core.
def test_tensors_come_first_and_then_one_of_size_zero_for_every_op_with_control_edges():
    graph = Graph(
        "g",
        ops("a", "b", "c", "d"),
        (Tensor("t", 0, 8, (1, 2)), Tensor("u", 1, 4, (3,), output=True, resident=True)),
        control=((0, 3), (2, 3), (0, 2), (0, 3)),
    )
    problem = Problem(graph, cluster(GPU))
    assert problem.size.tolist() == [8, 4, 0, 0]
    assert problem.producer.tolist() == [0, 1, 0, 2]
    assert problem.consumer_start.tolist() == [0, 2, 3, 5, 6]
    assert problem.consumers.tolist() == [1, 2, 3, 3, 2, 3]
    assert problem.output.tolist() == [0, 1, 0, 0]
    assert problem.resident.tolist() == [0, 1, 0, 0]
    assert np.isnan(problem.transfer_seconds).all()


def test_a_graph_without_tensors_has_empty_arrays():
    problem = Problem(Graph("g", ops("a")), cluster(GPU))
    assert problem.size.tolist() == problem.producer.tolist() == problem.consumers.tolist() == []
    assert problem.consumer_start.tolist() == [0]


def test_arrays_have_the_types_that_the_core_takes():
    graph = Graph("g", ops("a", "b"), (Tensor("t", 0, 8, (1,)),))
    problem = Problem(graph, cluster(GPU, CPU))
    types = {
        np.float64: ("seconds", "transfer_seconds", "latency", "bandwidth"),
        np.int64: ("size", "persistent", "workspace", "capacity"),
        np.int32: ("producer", "consumer_start", "consumers", "unit", "channel"),
    }
    for dtype, names in types.items():
        assert all(getattr(problem, name).dtype == dtype for name in names)


# Units: the sums of their ops and the devices that they may run on.
def test_units_are_groups_and_lone_ops_numbered_by_their_first_op():
    grouped = (
        Op("a", seconds=FREE, group="w"),
        Op("w", seconds=FREE),
        Op("c", seconds=FREE, group="w"),
    )
    problem = Problem(Graph("g", grouped), cluster(GPU))
    assert problem.unit.tolist() == [0, 1, 0]
    assert problem.units == 2


def test_a_unit_takes_and_holds_what_its_ops_do():
    first = Op("a", seconds=FREE, group="g", persistent=3)
    last = Op("c", seconds={"*": 2.0}, group="g", persistent=4)
    problem = Problem(Graph("g", (first, *ops("b"), last)), cluster(GPU, CPU))
    assert problem.unit_seconds.tolist() == [[3.0, 3.0], [1.0, 1.0]]
    assert problem.unit_persistent.tolist() == [7, 0]


def test_what_is_no_cpu_is_an_accelerator():
    problem = Problem(Graph("g", ops("a")), cluster(GPU, CPU, Device("tpu", kind="tpu")))
    assert problem.accelerators.tolist() == [True, False, True]


def test_a_pin_names_a_device_or_a_kind():
    pinned = (
        Op("a", seconds=FREE, device="cpu0"),
        Op("b", seconds=FREE, device="gpu"),
        Op("c", seconds=FREE),
    )
    problem = Problem(Graph("g", pinned), cluster(GPU, CPU))
    assert problem.allowed.tolist() == [[False, True], [True, False], [True, True]]


def test_a_pin_holds_for_the_whole_group():
    grouped = (Op("a", seconds=FREE, group="w"), Op("b", seconds=FREE, group="w", device="cpu0"))
    problem = Problem(Graph("g", grouped), cluster(GPU, CPU))
    assert problem.allowed.tolist() == [[False, True]]


def test_a_device_that_cannot_run_or_hold_an_op_is_not_allowed():
    mixed = (Op("a", seconds={"cpu": 1.0}), Op("b", seconds=FREE, persistent=500))
    problem = Problem(Graph("g", mixed), cluster(GPU, CPU))
    assert problem.allowed.tolist() == [[False, True], [False, True]]


def test_a_device_without_memory_limit_holds_anything():
    problem = Problem(Graph("g", (Op("a", seconds=FREE, persistent=2**50),)), cluster(Device("d")))
    assert problem.capacity.tolist() == [UNLIMITED]


# A problem without any schedule is refused with the op or group that prevents one.
def test_an_unknown_pin_is_an_error_with_the_nearest_device():
    graph = Graph("g", (Op("a", seconds=FREE, device="gpu1"),))
    with pytest.raises(GraphError, match="'a' is pinned to unknown device 'gpu1'; did you mean"):
        Problem(graph, cluster(GPU, CPU))


def test_an_op_that_no_device_can_run_is_an_error():
    graph = Graph("g", (Op("a", seconds={"tpu": 1.0}),))
    with pytest.raises(SituateError, match="no device of cluster 'c' can run op 'a'"):
        Problem(graph, cluster(GPU, CPU))


def test_an_op_that_no_device_can_hold_is_an_error_that_says_by_how_much():
    graph = Graph("g", (Op("a", seconds=FREE, persistent=1001),))
    with pytest.raises(
        SituateError, match=r"op 'a' holds 1001 bytes, more than any device of cluster 'c' \(1000\)"
    ):
        Problem(graph, cluster(GPU, CPU))


def test_a_group_that_no_device_can_hold_is_an_error():
    parts = tuple(Op(f"o{i}", seconds=FREE, group="w", persistent=400) for i in range(3))
    with pytest.raises(SituateError, match="group 'w' holds 1200 bytes, more than any device"):
        Problem(Graph("g", parts), cluster(GPU, CPU))


def test_an_op_that_the_devices_that_run_it_cannot_hold_is_an_error():
    graph = Graph("g", (Op("a", seconds={"gpu": 1.0}, persistent=500),))
    with pytest.raises(
        SituateError, match=r"holds 500 bytes, more than any device .* that can run it \(100\)"
    ):
        Problem(graph, cluster(GPU, CPU))


def test_an_op_that_no_device_can_run_says_what_its_seconds_are_for():
    graph = Graph("g", (Op("a", seconds={"tpu": 1.0, "H100": 2.0}),))
    with pytest.raises(SituateError, match="can run op 'a': it has seconds for 'tpu', 'H100'"):
        Problem(graph, cluster(GPU, CPU))


@pytest.mark.parametrize(
    ("ops", "tensors", "place"),
    [
        ((Op("a", seconds={"*": 1e308}), Op("b", seconds={"*": 1e308})), (), "op 'a'"),
        (ops("a", "b"), (Tensor("t", 0, 8, (1,), seconds=1e308),), "tensor 't'"),
    ],
)
def test_times_whose_sum_is_no_number_are_an_error(ops, tensors, place):
    with pytest.raises(SituateError, match=f"add up to more than 1e\\+300 .*{place}"):
        Problem(Graph("g", ops, tensors), cluster(GPU, CPU))


def test_on_one_device_no_tensor_is_what_takes_too_long():
    endless = (Tensor("t", 0, 8, (1,), seconds=1e308),)
    graph = Graph("g", (Op("a", seconds=FREE), Op("b", seconds={"*": 1e301})), endless, unit="")
    with pytest.raises(SituateError, match=r"more than 1e\+300: look at op 'b'"):
        Problem(graph, cluster(GPU))


def test_one_device_sends_nothing_however_long_that_would_take():
    endless = tuple(Tensor(f"t{i}", 0, 8, (1,), seconds=1e308) for i in range(2))
    assert Problem(Graph("g", ops("a", "b"), endless), cluster(GPU)).serial_seconds == 2.0


def test_measured_workspaces_whose_sum_is_too_large_are_an_error() -> None:
    measured_device = MeasuredDevice("gpu0", "gpu", workspace={"s": 2**53, "r": 2**53 - 1})
    costs = Costs("m", "2026-01-01T00:00:00", {}, [measured_device])
    ops = tuple(Op(f"op{i}", seconds=FREE, signature="s" if i else "r") for i in range(1025))
    with pytest.raises(SituateError, match=r"cost file are \d+ bytes, more than 2\^62.*op 'op1'"):
        Problem(Graph("g", ops), cluster(GPU), costs=costs)
    Problem(Graph("g", ops[:512]), cluster(GPU), costs=costs)


def test_a_link_so_slow_that_a_transfer_never_ends_is_an_error():
    slow = Cluster("c", (GPU, CPU), (Link("*", "*", 5e-324),))
    with pytest.raises(SituateError, match=r"add up to more than 1e\+300 .*link"):
        Problem(Graph("g", ops("a", "b"), (Tensor("t", 0, 8, (1,)),)), slow)


def test_a_synchronisation_that_never_ends_is_an_error_that_names_it():
    graph = Graph("g", ops("a", "b"), (Tensor("t", 0, 8, (1,)),))
    late = cluster(GPU, CPU, synchronisation=1e301)
    with pytest.raises(SituateError, match=r"1e\+300 .*: look at the cluster's synchronisation"):
        Problem(graph, late)


def test_a_group_whose_ops_run_on_different_devices_is_an_error():
    apart = (Op("a", seconds={"gpu": 1.0}, group="w"), Op("b", seconds={"cpu": 1.0}, group="w"))
    with pytest.raises(SituateError, match="no device of cluster 'c' can run group 'w'"):
        Problem(Graph("g", apart), cluster(GPU, CPU))


# Rules come by name, from the graph or as an object.
def test_unknown_objectives_and_rules_are_errors_with_the_nearest_name():
    graph = Graph("g", ops("a"))
    with pytest.raises(SituateError, match="unknown objective 'tiem'; did you mean 'time'"):
        Problem(graph, cluster(GPU), "tiem")
    with pytest.raises(SituateError, match="unknown rules 'regall'; did you mean 'regal'"):
        Problem(graph, cluster(GPU), rules="regall")


def test_rules_may_be_given_by_name():
    problem = Problem(Graph("g", ops("a")), cluster(GPU), rules="regal")
    assert problem.rules is RULES["regal"]
    assert problem.transfers == "blocking"


def test_other_rules_may_not_have_the_name_of_known_ones():
    """A plan and a study know rules by their name."""
    graph = Graph("g", ops("a"))
    assert Problem(graph, cluster(GPU), rules=Rules("situate")).rules == RULES["situate"]
    with pytest.raises(SituateError, match="rules 'situate': situate knows others by that name"):
        Problem(graph, cluster(GPU), rules=Rules("situate", contention=False))


def test_transfers_are_the_clusters_unless_the_rules_say_otherwise():
    graph, blocking = Graph("g", ops("a")), cluster(GPU, transfers="blocking")
    assert Problem(graph, blocking).transfers == "blocking"
    assert Problem(graph, blocking, rules=RULES["doppler"]).transfers == "overlapped"


# Times of transfers and ops, and the depth-first order.
def test_transfer_time_is_the_tensors_own_or_latency_and_size_over_bandwidth():
    tensors = (
        Tensor("linked", 0, 10**9, (1,)),
        Tensor("own", 0, 10**9, (1,), seconds=3.0),
        Tensor("signal", 0, 0, (1,)),
        Tensor("own of size zero", 0, 0, (1,), seconds=2.0),
    )
    wide = tuple(Device(f"d{i}") for i in range(2))
    problem = Problem(Graph("g", ops("a", "b"), tensors), cluster(*wide, synchronisation=0.25))
    assert [problem.transfer_time(t, 0, 1) for t in range(4)] == [1.25, 3.25, 0.25, 2.25]
    assert [problem.transfer_time(t, 1, 1) for t in range(4)] == [0.0] * 4


def test_the_fastest_time_of_an_op_is_that_on_a_device_which_may_run_its_unit():
    graph = Graph(
        "g",
        (
            Op("anywhere", seconds={"gpu0": 2.0, "cpu": 1.0}),
            Op("pinned", seconds={"gpu0": 2.0, "cpu": 1.0}, device="gpu0"),
            Op("large", seconds={"gpu0": 1.0, "cpu": 3.0}, persistent=101),
        ),
    )
    assert Problem(graph, cluster(GPU, CPU)).fastest.tolist() == [1.0, 2.0, 3.0]


def test_depth_first_an_op_comes_just_before_it_is_first_needed():
    """The later of two inputs first; an op that nobody waits for at its place in the order."""
    graph = Graph(
        "g",
        ops("a", "b", "c", "d", "sink", "alone"),
        (Tensor("t", 0, 8, (2,)), Tensor("u", 1, 8, (3,)), Tensor("v", 2, 8, (4,))),
        control=((3, 4), (0, 3)),
    )
    assert Problem(graph, cluster(GPU)).depth_first.tolist() == [5, 1, 0, 3, 2, 4]


@pytest.mark.parametrize("seed", range(30))
def test_depth_first_every_op_comes_once_and_after_what_it_needs(seed):
    problem = random_problem(seed)
    order = problem.depth_first.tolist()
    assert sorted(order) == list(range(problem.n))
    assert all(order.index(a) < order.index(b) for a, b in problem.graph.edges())


class CountingOp:
    """An op's number that counts its look-ups."""

    lookups = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        CountingOp.lookups += 1
        return self.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        return self.number == other


def test_depth_first_looks_at_the_inputs_of_an_op_that_many_wait_for_no_more_often(monkeypatch):
    """40 inputs of a hub that each op of a chain of 40 reads: 119 edges."""
    n = 40
    edges = [(i, n) for i in range(n)] + [(n, n + 1 + i) for i in range(n)]
    edges += [(n + i, n + 1 + i) for i in range(1, n)]
    graph = Graph("g", ops(*map(str, range(2 * n + 1))), control=tuple(edges))
    problem = Problem(graph, cluster(GPU))
    monkeypatch.setattr(Graph, "edges", lambda _: [(CountingOp(a), b) for a, b in edges])
    monkeypatch.setattr(CountingOp, "lookups", 0)
    assert problem.depth_first.tolist() == [*reversed(range(n)), *range(n, 2 * n + 1)]
    assert CountingOp.lookups < 8 * len(edges)


# The sum of all times bounds every schedule.
@pytest.mark.parametrize("seed", range(100))
def test_no_schedule_takes_longer_than_all_one_after_another(seed):
    problem = random_problem(seed)
    decision = random_decision(problem, seed)
    schedule = simulate(problem, decision.placement, decision.priority)
    assert schedule.makespan <= problem.serial_seconds * (1 + 1e-12)


def test_serial_seconds_send_every_tensor_once_to_every_other_device():
    tensors = (
        Tensor("t", 0, 10**9, (1,)),
        Tensor("u", 0, 0, (1,)),
        Tensor("v", 0, 8, (1,), seconds=4),
    )
    three = (GPU, CPU, Device("gpu1", memory=100))
    problem = Problem(Graph("g", ops("a", "b"), tensors), cluster(*three, synchronisation=0.25))
    assert problem.serial_seconds == 2 + 2 * ((0.5 + 0.5) + 0 + 4 + 3 * 0.25)
    assert Problem(Graph("g", ops("a", "b"), tensors), cluster(GPU)).serial_seconds == 2


# Graphs may bring rules, a machine and times without a unit.
@pytest.mark.parametrize("name", ["situate", "regal", "doppler", "dnn-partitioning"])
def test_a_graphs_own_rules_hold_where_none_are_given(name):
    graph = Graph("g", ops("a"), rules=name)
    assert Problem(graph, cluster(GPU)).rules == RULES[name]
    assert Problem(graph, cluster(GPU), rules=RULES["situate"]).rules == RULES["situate"]


def test_a_step_under_a_graphs_own_rules_takes_what_they_say():
    """Blocking: a sends for a second before c runs for three; the lower bound knows as little."""
    graph = Graph(
        "g",
        (
            Op("a", seconds=FREE, device="d0"),
            Op("b", seconds=FREE, device="d1"),
            Op("c", seconds={"*": 3.0}, device="d0"),
        ),
        (Tensor("t", 0, 1, (1,), seconds=1.0), Tensor("u", 0, 1, (2,), seconds=1.0)),
        rules="regal",
    )
    identical = Cluster.identical(2)
    devices = {"a": "d0", "b": "d1", "c": "d0"}
    assert evaluate(Problem(graph, identical), devices).makespan == 5
    assert evaluate(Problem(graph, identical, rules="situate"), devices).makespan == 4


def test_a_graphs_unknown_rules_are_refused_by_the_graphs_name():
    with pytest.raises(GraphError, match="graph 'g': unknown rules 'regall'; did you mean 'regal'"):
        Problem(Graph("g", ops("a"), rules="regall"), cluster(GPU))


def test_a_graphs_own_machine_is_its_cluster_where_none_is_given():
    machine = (MachineDevice("x", "gpu", 7), MachineDevice("y", "cpu"))
    problem = Problem(Graph("g", ops("a"), machine=machine))
    assert problem.cluster.names == ["x", "y"]
    assert problem.capacity.tolist() == [7, UNLIMITED]


def test_a_graph_without_a_machine_needs_a_cluster():
    with pytest.raises(SituateError, match="'g' brings no machine of its own: give a cluster"):
        Problem(Graph("g", ops("a")))


def test_times_without_a_unit_do_not_meet_links_in_bytes_per_second():
    graph = Graph("g", ops("a"), unit="")
    with pytest.raises(SituateError, match=r"times without a unit.*Cluster\.identical"):
        Problem(graph, cluster(GPU, CPU))
    assert Problem(graph, Cluster.identical(2)).n == 1
    assert Problem(graph, replace(cluster(GPU, CPU), unit="")).n == 1


def test_ops_that_the_costs_do_not_know_are_told_of():
    """As the command line does; one that brings its own seconds needs none."""
    graph = Graph("g", (Op("a", flops=1, signature="x"), Op("b", flops=1), *ops("c")))
    rates = {"flops": {"float32": 1.0}}
    machine = cluster(Device("gpu0", **rates), Device("gpu1", **rates))
    measured_device = MeasuredDevice("gpu0", "gpu", seconds={"x": Timing(1.0, 1.0, 1.0, 5)})
    costs = Costs(machine="m", date="", versions={}, devices=[measured_device])
    message = "costs: 1 of 2 ops were not measured on gpu0, gpu1: their times are estimates"
    with pytest.warns(UserWarning, match=message):
        Problem(graph, machine, costs=costs)
    with pytest.warns(UserWarning, match="costs: no op was measured on gpu0, gpu1"):
        Problem(Graph("g", (Op("b", flops=1),)), machine, costs=costs)


# Signals occupy no channel; memory by steps; confined problems.
def test_a_signal_is_what_moves_nothing_in_no_time_of_its_own() -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "ab")
    tensors = (
        Tensor("nothing", 0, 0, (1,)),
        Tensor("slow nothing", 0, 0, (1,), seconds=2.0),
        Tensor("something", 0, 8, (1,)),
        Tensor("slow something", 0, 8, (1,), seconds=2.0),
    )
    graph = Graph("g", ops, tensors, control=((0, 1),))
    assert Problem(graph, cluster(GPU)).signal.tolist() == [True, False, False, False, True]
    assert not Problem(graph, cluster(GPU), rules="regal").signal.any()


def test_what_is_no_signal_takes_its_links_latency() -> None:
    graph = Graph("g", ops("a", "b"), (), control=((0, 1),))
    machine = Cluster("pair", (Device("d0"), Device("d1")), (Link("*", "*", 4.0, latency=0.5),))
    assert Problem(graph, machine).transfer_time(0, 0, 1) == 0.0
    assert Problem(graph, machine, rules="regal").transfer_time(0, 0, 1) == 0.5


def test_per_step_no_tensor_stays_for_being_an_output() -> None:
    graph = Graph("g", ops("a"), (Tensor("made", 0, 8, (), output=True),))
    assert Problem(graph, cluster(GPU)).output.tolist() == [1]
    assert Problem(graph, cluster(GPU), rules="regal").output.tolist() == [0]


def test_a_problem_is_confined_to_fewer_devices_and_larger_units():
    """Three ops that hold 40 bytes each, of which the smaller device holds two."""
    small = Graph("g", tuple(Op(name, seconds=FREE, persistent=40) for name in "abc"))
    problem = Problem(small, cluster(GPU, CPU))
    before = problem.allowed.copy(), problem.unit_seconds.copy(), problem.fastest.copy()
    may_run = np.array([[True, True], [True, False], [True, True]])
    pair = problem.confined(np.array([0, 1, 0]), may_run)
    assert pair.unit.tolist() == [0, 1, 0]
    assert pair.units == 2
    assert pair.allowed.tolist() == [[True, True], [True, False]]
    assert pair.unit_seconds.tolist() == [[2, 2], [1, 1]]
    assert pair.unit_persistent.tolist() == [80, 40]
    whole = pair.confined(np.array([0, 0]), pair.allowed)
    assert whole.allowed.tolist() == [[False, False]]
    after = problem.allowed, problem.unit_seconds, problem.fastest
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_tensors_of_control_edges_follow_all_others_as_their_ops_are_first_named() -> None:
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in "abcd")
    control = ((1, 2), (0, 3), (1, 3))
    problem = Problem(
        Graph("numbers", ops, (Tensor("t", 2, 4, (3,)),), control), Cluster.identical(2)
    )
    assert problem.producer.tolist() == [2, 1, 0]
    first, last = problem.consumer_start[1:3]
    assert problem.consumers[first:last].tolist() == [2, 3]
    assert problem.signal.tolist() == [False, True, True]


# A problem is a value: its parts are fixed, a changed copy is checked again, and a confined one
# shares all arrays that do not depend on units.


def test_parts_and_arrays_cannot_be_reassigned() -> None:
    problem = Problem(Graph("g", ops("a")), cluster(GPU))
    for name in ("cluster", "rules", "seconds", "unit"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(problem, name, None)


def test_a_changed_copy_is_checked_like_any_other() -> None:
    problem = Problem(Graph("g", ops("a")), cluster(GPU))
    assert dataclasses.replace(problem, objective="memory").objective == "memory"
    with pytest.raises(SituateError, match="unknown objective 'tiem'"):
        dataclasses.replace(problem, objective="tiem")


def test_a_confined_problem_shares_arrays_and_may_have_units_without_devices() -> None:
    problem = Problem(Graph("g", ops("a", "b")), cluster(GPU, CPU))
    confined = problem.confined(np.zeros(2, np.int64), np.array([[True, False], [False, True]]))
    assert confined.seconds is problem.seconds
    assert (confined.units, confined.allowed.any()) == (1, False)
