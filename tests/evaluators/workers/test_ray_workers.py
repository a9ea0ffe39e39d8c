"""Workers of a Ray cluster with several nodes, which lose their processes and their node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")

from situate.errors import SituateError
from situate.evaluators.simulated import SimulatedMachine
from situate.evaluators.workers import dispatch, ray_workers
from situate.evaluators.workers.machine import WorkerMachine
from situate.evaluators.workers.places import Place
from situate.evaluators.workers.ray_workers import RayWorkers, worker_capacity
from situate.evaluators.workers.workers import NoWorkers, Terms
from tests.evaluators.workers.faulty import Counting, Obeying
from tests.evaluators.workers.test_machine import PLACEMENTS, UNSENDABLE, measured_as_by_one
from tests.solvers.killed import PROBLEM, outcome, search

LIMIT = 2.0
"""Seconds of a measurement that does not hang."""


class Nodes:
    """A Ray cluster on this machine, whose nodes come and go."""

    def __init__(self) -> None:
        import ray
        from ray.cluster_utils import Cluster

        self.ray: Any = ray
        self._cluster = Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        self._second = self._cluster.add_node(num_cpus=1)
        ray.init(self._cluster.address, log_to_driver=False)

    def remove_one(self) -> None:
        """As if its machine was turned off."""
        self._cluster.remove_node(self._second, allow_graceful=False)

    def close(self) -> None:
        self.ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    cluster_machine = Nodes()
    yield cluster_machine
    cluster_machine.close()


@pytest.fixture(scope="module")
def obeying(tmp_path_factory: pytest.TempPathFactory) -> Obeying:
    """The evaluator of all actors."""
    return Obeying(tmp_path_factory.mktemp("orders"))


@pytest.fixture(scope="module")
def machine(nodes: Nodes, obeying: Obeying) -> Iterator[WorkerMachine]:
    """Two workers, one a node, both of which have started."""
    start = partial(RayWorkers, nodes.ray)
    with WorkerMachine(obeying, 2, terms=Terms(limit=LIMIT), start=start) as cluster_machine:
        both_start(cluster_machine)
        yield cluster_machine


def both_start(machine: WorkerMachine) -> None:
    """Measure until each worker has done so."""
    before = dict(machine.counts.completed)
    while len(machine.counts.completed.items() - before.items()) < 2:
        measured_as_by_one(machine)


# Measurements and errors equal those of one process.
def test_a_cluster_measures_as_one_process_does(nodes: Nodes, machine: WorkerMachine) -> None:
    measured_as_by_one(machine)
    assert worker_capacity(nodes.ray) == 2


# Lost actors lose no sample.
@pytest.mark.parametrize("harm", ["kill", "hang"])
def test_an_actor_that_is_killed_or_hangs_loses_nothing(
    harm: str, machine: WorkerMachine, obeying: Obeying
) -> None:
    failures = sum(machine.counts.failures.values())
    obeying.order(harm)
    while sum(machine.counts.failures.values()) == failures:  # another may do it meanwhile
        measured_as_by_one(machine)
    assert sum(machine.counts.completed.values()) % 12 == 0


def test_an_error_of_the_evaluator_comes_back(machine: WorkerMachine, obeying: Obeying) -> None:
    obeying.order("fail")
    with pytest.raises(RuntimeError, match=UNSENDABLE):
        machine.measure(PLACEMENTS, 0)


def test_a_worker_for_which_no_cpu_is_free_is_named(
    nodes: Nodes, machine: WorkerMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_start(machine)
    monkeypatch.setattr(dispatch, "START_SECONDS", 0.5)
    monkeypatch.setattr(dispatch, "MAX_WORKER_FAILURES", 1)
    with (
        WorkerMachine(SimulatedMachine(PROBLEM), 1, start=partial(RayWorkers, nodes.ray)) as third,
        pytest.raises(SituateError, match="the cluster has fewer free CPUs than there are"),
    ):
        third.measure(PLACEMENTS, 0)


# Metrics, and connections to clusters.
def test_figures_become_gauges(machine: WorkerMachine) -> None:
    board = ray_workers._MetricsBoard()
    for busy in (1.0, 2.0):
        board.show({"workers/busy": busy, "best_seconds": 1.5})
    names = {gauge.info["name"] for gauge in board._gauges.values()}
    assert names == {"situate_workers_busy", "situate_best_seconds"}
    machine.show({"best_seconds": 1.5})


def test_a_process_that_is_connected_already_is_refused(nodes: Nodes) -> None:
    with (
        pytest.raises(SituateError, match=r"connected to a Ray cluster already: call ray\.shut"),
        Place.parse("ray://127.0.0.1:9").machine(SimulatedMachine(PROBLEM)),
    ):
        raise AssertionError
    assert worker_capacity(nodes.ray) == 2


def test_a_cluster_that_is_lost_ends_the_search_in_a_line(
    nodes: Nodes, machine: WorkerMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as lost:
        lost.setattr(nodes.ray, "is_initialized", lambda: False)
        with pytest.raises(NoWorkers, match=r"^workers: the connection to the Ray cluster"):
            machine.measure(PLACEMENTS, 0)


# Whole searches, as users start them.
def test_a_search_on_a_cluster_is_that_of_one_process(
    machine: WorkerMachine, obeying: Obeying, tmp_path: Path
) -> None:
    """Also with an actor that is killed meanwhile."""
    obeying.order("kill")
    values = search(None, evaluator=machine)
    assert not obeying.ordered()
    assert outcome(values) == outcome(search(None, evaluator=Counting(tmp_path)))


def test_a_node_that_is_lost_loses_nothing(nodes: Nodes, machine: WorkerMachine) -> None:
    """The last test of the machine, which ends its workers: the cluster goes on with one node."""
    both_start(machine)
    failures = sum(machine.counts.failures.values())
    node = machine.measure_each(PLACEMENTS, np.arange(12))
    rows = [next(node)[0] for _ in range(3)]
    nodes.remove_one()
    rows += [values for values, _ in node]
    while sum(machine.counts.failures.values()) == failures:  # its processes end a little later
        measured_as_by_one(machine)
    assert sorted(np.concatenate(rows)) == list(range(12))
    machine.close()


def test_workers_run_where_users_say(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_workers, "ray_cluster", lambda *_: nullcontext(nodes.ray))
    with Place.parse("ray:1").machine(Counting(tmp_path)) as one:
        measured_as_by_one(one)
    assert len(one.counts.completed) == 1


# Authentication and addresses.
@pytest.mark.parametrize(
    ("address", "token", "mode"),
    [
        (None, False, "token"),
        ("ray://node:1", False, None),
        ("ray://node:1", True, "token"),
    ],
)
def test_ray_shows_its_token(
    address: str | None,
    token: bool,
    mode: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("RAY_AUTH_MODE", *ray_workers.TOKEN_VARIABLES):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(ray_workers, "TOKEN_FILE", tmp_path / "token")
    if token:
        ray_workers.TOKEN_FILE.touch()
    ray_workers._authenticate(address)
    assert os.environ.get("RAY_AUTH_MODE") == mode


@pytest.mark.parametrize("address", ["ray://127.0.0.1:9", "ray://127.0.0.1:99999"])
def test_a_cluster_that_is_not_there_is_refused_in_a_line(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: None)  # of the cluster that other tests use
    with (
        pytest.raises(SituateError, match=rf"^workers: no Ray cluster answers at {address} \("),
        ray_workers.ray_cluster(address),
    ):
        raise AssertionError
