"""The core refuses invalid arrays, as it indexes with them unchecked afterwards."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from situate import _core
from situate.data.cluster import Cluster, Device, Link
from situate.data.core_problem import core_problem
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.rules import RULES
from situate.data.topology import pipeline_order
from situate.simulation.simulator import Simulator
from tests.oracle.problems import random_problem
from tests.solvers.families import chain, devices

PROBLEM = random_problem(3)
BEYOND = "an op that does not exist"
NO_CHANNEL = "a channel that does not exist"
BYTES = "must not be negative or more than 2\\^62"
TIMES = "times must not be negative"


def _last(value: float) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        changed = array.copy()
        changed.flat[-1] = value
        return changed

    return change


BAD = [
    ("seconds", _last(np.nan), TIMES),
    ("seconds", _last(-1.0), TIMES),
    ("seconds", lambda a: a[:, :0], "differ in length"),
    ("seconds", lambda a: np.full_like(a, np.inf), "takes for ever"),
    ("own_seconds", _last(np.inf), TIMES),
    ("latency", _last(np.nan), TIMES),
    ("latency", lambda a: a.reshape(1, -1), "over devices differ"),
    ("synchronisation", lambda _: np.nan, TIMES),
    ("bandwidth", _last(0.0), "bandwidths must be positive"),
    ("size", _last(-1), BYTES),
    ("size", _last(2**62 + 1), BYTES),
    ("size", lambda a: np.full_like(a, 2**61), BYTES),
    ("workspace", _last(2**63 - 1), BYTES),
    ("capacity", _last(-1), "capacities"),
    ("producer", _last(-1), BEYOND),
    ("producer", _last(10**6), BEYOND),
    ("consumers", _last(2**31 - 1), BEYOND),
    ("consumers", lambda a: a[:-1], "must follow each other"),
    ("consumers", lambda a: a[::-1].copy(), "topological"),
    ("consumer_start", _last(0), "must follow each other"),
    ("order", _last(0), "permutation"),
    ("order", lambda a: a[::-1].copy(), "topological"),
    ("unit", _last(-1), "unit's number"),
    ("unit", _last(10**6), "unit's number"),
    ("unit", lambda a: a + (a > 0), "allowed must be units x devices"),
    ("allowed", np.zeros_like, "may run on no device"),
    ("channel", lambda a: np.full_like(a, -1), NO_CHANNEL),
    ("channel", _last(2**31 - 1), NO_CHANNEL),
]


PARTS = {
    "ops": _core.problem.Ops,
    "tensors": _core.problem.Tensors,
    "devices": _core.problem.Devices,
    "rules": _core.problem.Rules,
}


@pytest.fixture
def arrays(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The arguments of the parts of the core's problem."""
    copies: dict[str, dict[str, Any]] = {}

    def keep(part: str) -> Callable[..., object]:
        return lambda **fields: copies.setdefault(part, fields) and PARTS[part](**fields)

    with monkeypatch.context() as patch:
        for part in PARTS:
            patch.setattr(_core.problem, part.capitalize(), keep(part))
        core_problem(PROBLEM)
    return copies


def _problem_of(arrays: dict[str, dict[str, Any]]) -> _core.problem.Problem:
    return _core.problem.Problem(
        **{part: instances(**arrays[part]) for part, instances in PARTS.items()}
    )


@pytest.mark.parametrize(("name", "change", "why"), BAD)
def test_an_invalid_problem_is_refused(
    arrays: dict[str, dict[str, Any]], name: str, change: Callable[[Any], Any], why: str
) -> None:
    assert _problem_of(arrays)
    [part] = [fields for fields in arrays.values() if name in fields]
    part[name] = change(part[name])
    with pytest.raises(ValueError, match=why):
        _problem_of(arrays)


def test_a_unit_without_an_op_is_refused(arrays: dict[str, dict[str, Any]]) -> None:
    ops = arrays["ops"]
    ops["unit"] = np.where(ops["unit"] == 0, 1, ops["unit"]).astype(np.int32)
    with pytest.raises(ValueError, match="a unit has no op"):
        _problem_of(arrays)


@pytest.mark.parametrize("decoder", ["eager", "serial"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_priorities_that_are_not_finite_are_refused(decoder: str, value: float) -> None:
    """They have no order, and sorting them could read beyond the end."""
    core, (m, n, d) = core_problem(PROBLEM), (len(PROBLEM.size), PROBLEM.n, PROBLEM.d)
    placement, priority = np.zeros((1, n), np.int32), np.zeros((1, n), np.float32)
    moves, bad = np.zeros((1, m, d), np.float32), np.full((1, m, d), value, np.float32)
    for numbers in (priority + np.float32(value), moves), (priority, bad):
        with pytest.raises(ValueError, match="priorities must be finite"):
            _core.simulation.evaluate(core, placement, *numbers, decoder, 1)
        with pytest.raises(ValueError, match="priorities must be finite"):
            _core.simulation.schedule(core, placement[0], numbers[0][0], numbers[1], decoder)


def test_transfer_priorities_are_by_tensor_then_device() -> None:
    """As many numbers in another order are not taken for them."""
    n, shape = PROBLEM.n, (1, PROBLEM.d, len(PROBLEM.size))
    decision = np.zeros((1, n), np.int32), np.zeros((1, n), np.float32)
    with pytest.raises(ValueError, match="decisions x tensors x devices"):
        Simulator(PROBLEM).evaluate(*decision, np.zeros(shape, np.float32))


@pytest.mark.parametrize("threads", [-1, -(2**31)])
def test_less_than_one_thread_is_refused(threads: int) -> None:
    """It was as many as there are decisions."""
    decision = np.zeros((4, PROBLEM.n), np.int32), np.zeros((4, PROBLEM.n), np.float32)
    with pytest.raises(ValueError, match="there must be a thread"):
        Simulator(PROBLEM).evaluate(*decision, threads=threads)


@pytest.mark.parametrize("rule", [_core.search.heft, _core.search.etf])
@pytest.mark.parametrize("room", [-0.1, 1.1, np.nan, np.inf])
def test_room_is_a_share(rule: Callable[..., object], room: float) -> None:
    with pytest.raises(ValueError, match="a share of memory"):
        rule(core_problem(PROBLEM), room)


def _load_annealers(problem: Problem) -> _core.search.LoadAnnealers:
    start = np.zeros(problem.n, np.int32)
    return _core.search.make_load_annealers(
        core_problem(problem), 0, 1, start, pipeline_order(problem)
    )


# The core releases the interpreter lock, and its loads and lines match plain Python.
@pytest.mark.parametrize("rule", [_core.search.heft, _core.search.etf])
def test_other_threads_run_while_a_rule_lists(rule: Callable[..., object]) -> None:
    core = core_problem(Problem(chain(20_000), devices(*[1] * 100)))
    listing = threading.Thread(target=rule, args=(core, 1.0))
    listing.start()
    laps = 0
    while listing.is_alive():
        laps += 1
        time.sleep(0.001)
    assert laps > 5


@pytest.mark.parametrize("rules", ["situate", "regal", "dnn-partitioning"])
def test_loads_that_are_kept_up_are_those_of_the_schedule(rules: str) -> None:
    """Signals take time in these problems."""
    for seed in range(60):
        draws = random_problem(seed)
        problem = Problem(draws.graph, draws.cluster, "throughput", RULES[rules])
        load_annealers = _core.search.make_load_annealers(
            core_problem(problem),
            seed,
            1,
            problem.allowed.argmax(axis=1)[problem.unit].astype(np.int32),
            pipeline_order(problem),
        )
        load_annealers.run(0.1, 50, math.inf, 1)
        _, period, placement = load_annealers.best(0)
        schedule = Simulator(problem).schedule(placement, np.zeros(problem.n, np.float32))
        assert period == pytest.approx(schedule.period(problem), rel=1e-9), seed


def test_a_line_is_split_anew_at_every_step() -> None:
    """As if it were the first split: pieces of another step are others."""
    problem = Problem(chain(40, seconds=1.0), devices(1, 1, 1), "throughput")
    turn = np.arange(3, dtype=np.int32)
    for step in (7, 3, 1):
        once, again = _load_annealers(problem), _load_annealers(problem)
        again.split(turn, 20)
        once.split(turn, step)
        again.split(turn, step)
        assert again.best(0)[1] == once.best(0)[1]


def test_a_line_is_split_by_what_ops_hold_now() -> None:
    """Pieces that were weighed before are others."""
    problem = Problem(chain(12, seconds=1.0), devices(1, 1, 1), "throughput")
    load_annealers, turn = _load_annealers(problem), np.arange(3, dtype=np.int32)
    load_annealers.split(turn, 1)
    load_annealers.restart(0, np.zeros(12, np.int32))
    load_annealers.weigh(0, np.ones(12, np.int64), np.array([2, 5, 5]))
    load_annealers.split(turn, 1)
    fits, _, placement = load_annealers.best(0)
    assert fits
    assert (np.bincount(placement) <= [2, 5, 5]).all()


def test_a_line_names_every_unit_once() -> None:
    line = np.zeros(PROBLEM.units, np.int32)
    start = PROBLEM.allowed.argmax(axis=1)[PROBLEM.unit].astype(np.int32)
    with pytest.raises(ValueError, match="the line names every unit once"):
        _core.search.make_load_annealers(core_problem(PROBLEM), 0, 1, start, line)


def test_units_are_not_put_on_two_devices() -> None:
    ops = tuple(Op(f"op{i}", seconds={"d0": 1.0, "d1": 1.0}, group="one") for i in range(2))
    problem = Problem(Graph("pair", ops), devices(1, 1))
    core, apart, order = core_problem(problem), np.array([0, 1], np.int32), problem.depth_first
    with pytest.raises(ValueError, match="ops of one unit on two devices"):
        _core.search.make_annealers(core, "time", 0, 1, apart, order)
    with pytest.raises(ValueError, match="ops of one unit on two devices"):
        _core.search.make_load_annealers(core, 0, 1, apart, np.zeros(1, np.int32))


# Limits of numbers, time and memory.
def test_bytes_that_overflow_are_refused() -> None:
    load_annealers = _load_annealers(Problem(chain(2, seconds=1.0), devices(1, 1), "throughput"))
    room = np.full(2, 2**62)
    for references in np.full(2, 2**62), np.full(2, -1):
        with pytest.raises(ValueError, match=BYTES):
            load_annealers.weigh(0, references, room)
    with pytest.raises(ValueError, match="capacities"):
        load_annealers.weigh(0, np.zeros(2, np.int64), np.full(2, -(2**63)))


def test_annealing_looks_at_the_clock_more_often_where_a_move_takes_longer() -> None:
    problem = Problem(chain(25_000), devices(1, 1))
    placement, order = np.zeros(problem.n, np.int32), np.array(problem.graph.order, np.int32)
    annealers = _core.search.make_annealers(core_problem(problem), "time", 0, 1, placement, order)
    annealers.run(0.0, 10**6, 1e-5, 1)
    assert annealers.evaluations <= 20


def test_a_tensor_sent_back_and_forth_does_not_overflow() -> None:
    """2^53 bytes with consumers on two devices in turn count more than 2^10 times; a negative sum
    would seem to fit."""
    n = 2100
    seconds = {f"d{i}": 1.0 for i in range(3)}
    ops = tuple(Op(f"op{i}", seconds=seconds) for i in range(n))
    graph = Graph("far", ops, (Tensor("t", 0, 2**53, tuple(range(1, n))),))
    small = tuple(Device(f"d{i}", memory=2**53 - 1) for i in (1, 2))
    cluster = Cluster("far", (Device("d0"), *small), (Link("*", "*", 1.0),))
    problem = Problem(graph, cluster)
    placement = (1 + np.arange(n) % 2).astype(np.int32)
    placement[0] = 0
    order = np.array(graph.order, np.int32)
    annealers = _core.search.make_annealers(core_problem(problem), "time", 0, 1, placement, order)
    assert not annealers.best(0)[0]


def test_a_hub_is_timed_as_quickly_in_any_order_of_its_consumers() -> None:
    """Each asks whether it is the first on its device to need the tensor: not with their square."""
    n = 40_000
    ops = tuple(Op(f"op{i}", seconds={"d0": 1.0, "d1": 1.0}) for i in range(n))
    two = devices(1, 1, transfers="blocking")
    placement = (np.arange(n) > 0).astype(np.int32)
    seconds = []
    for consumers in range(1, n), range(n - 1, 0, -1):
        hub = Graph("hub", ops, (Tensor("t", 0, 1, tuple(consumers)),))
        core = core_problem(Problem(hub, two))
        begin = time.thread_time()
        hub_first = np.arange(n, dtype=np.int32)
        annealers = _core.search.make_annealers(core, "time", 0, 1, placement, hub_first)
        seconds.append(time.thread_time() - begin)
        assert annealers.best(0)[1] == n + 1
    assert seconds[1] < 10 * seconds[0]


ROOM = """
import resource
import numpy as np
from situate import _core
from situate.data.core_problem import core_problem
from situate.data.problem import Problem
from situate.data.rules import RULES
from tests.solvers.families import chain, devices

problem = Problem(chain(10_000), devices(*[1] * 250))
core, order = core_problem(problem), np.arange(problem.n, dtype=np.int32)
with open("/proc/self/statm") as file:
    taken = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + 20_000_000, taken + 20_000_000))
_core.search.make_annealers(core, "time", 0, 1, np.zeros(problem.n, np.int32), order)
"""


@pytest.mark.skipif(
    sys.platform != "linux" or "san" in os.environ.get("LD_PRELOAD", ""),
    reason="reads /proc; sanitizers take memory of their own",
)
def test_annealing_on_many_devices_takes_memory_for_what_is_sent_alone() -> None:
    """A problem of 10,000 tensors one after the other."""
    subprocess.run([sys.executable, "-c", ROOM], timeout=60, check=True)


HANGS = """
import numpy as np
from situate import _core
def coarsen(neighbour):
    graph = _core.partition.UnitGraph(
        start=np.array([0, 0, 1]), neighbour=np.array([neighbour]), bytes=np.ones(1, np.int64),
        seconds=np.ones(2), persistent=np.ones(2, np.int64), capacity=np.ones(1, np.int64),
        allowed=np.ones((2, 1), np.uint8))
    return _core.partition.coarsen(graph, counts=np.ones(1, np.int64), fine=2, most=1.5)
{call}
"""


@pytest.mark.parametrize(
    "call",
    [
        "coarsen(1)  # an edge to itself",
        "coarsen(0)  # one that is not there the other way",
        "assert not _core.threads.make_flags(np.zeros(1, np.uint32)).wait(0, 1, np.nan)",
    ],
)
def test_nothing_goes_on_for_ever(call: str) -> None:
    command = [sys.executable, "-c", HANGS.replace("{call}", call)]
    subprocess.run(command, timeout=60, check=True, cwd=Path(_core.__file__).parent.parent)
