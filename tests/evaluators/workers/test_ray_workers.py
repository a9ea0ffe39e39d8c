"""Workers of a Ray cluster of several nodes, which lose their processes and their node."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.lib.killed_workers import Sleeping, killing
from situate.errors import SituateError
from situate.evaluators.measurements import Evaluator
from situate.evaluators.simulated import SimulatedMachine
from situate.evaluators.workers import dispatch, ray_workers
from situate.evaluators.workers.machine import WorkerMachine
from situate.evaluators.workers.places import Place
from situate.evaluators.workers.ray_workers import RayWorkers, room
from situate.evaluators.workers.terms import Terms
from tests.evaluators.workers.faulty import Counting, HangsAt, KilledAt, RaisesAt
from tests.evaluators.workers.test_machine import PLACEMENTS, UNSENDABLE, measured_as_by_one
from tests.solvers.killed import PROBLEM, outcome, search

pytest.importorskip("ray")


class Nodes:
    """A Ray cluster on this machine, whose nodes come and go."""

    def __init__(self) -> None:
        import ray
        from ray.cluster_utils import Cluster

        self.ray: Any = ray
        self._cluster = Cluster(True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        self._second = self._cluster.add_node(num_cpus=1)
        ray.init(self._cluster.address, log_to_driver=False)

    def workers(self, evaluator: Evaluator, limit: float | None = None) -> WorkerMachine:
        """Two workers, one a node."""
        start = partial(RayWorkers, self.ray)
        return WorkerMachine(evaluator, 2, terms=Terms(limit=limit), start=start)

    def remove_one(self) -> None:
        """As if its machine was turned off."""
        self._cluster.remove_node(self._second, allow_graceful=False)

    def close(self) -> None:
        self.ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    yield made
    made.close()


def test_a_cluster_measures_as_one_process_does(nodes: Nodes) -> None:
    machine = SimulatedMachine(PROBLEM, 0.1, 3, 1)
    with nodes.workers(machine) as shared:
        together = shared.measure(PLACEMENTS, 7)
    assert np.array_equal(together.seconds, machine.measure(PLACEMENTS, 7).seconds)
    assert room(nodes.ray) == 2


def test_a_killed_actor_loses_nothing(nodes: Nodes, tmp_path: Path) -> None:
    with nodes.workers(KilledAt(tmp_path, number=5)) as machine:
        measured_as_by_one(machine)
    assert sum(machine.counts.measured.values()) == 12
    assert sum(machine.counts.failures.values()) == 1


def test_a_hung_actor_is_ended(nodes: Nodes, tmp_path: Path) -> None:
    with nodes.workers(HangsAt(tmp_path, number=5), limit=1.0) as machine:
        measured_as_by_one(machine)


def test_an_error_of_the_evaluator_comes_back(nodes: Nodes, tmp_path: Path) -> None:
    with (
        nodes.workers(RaisesAt(tmp_path, number=5)) as machine,
        pytest.raises(RuntimeError, match=UNSENDABLE),
    ):
        machine.measure(PLACEMENTS, 0)


def test_a_worker_for_which_no_cpu_is_free_is_named(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = SimulatedMachine(PROBLEM)
    with nodes.workers(machine) as first:
        first.measure(PLACEMENTS, 0)
        monkeypatch.setattr(dispatch, "START_SECONDS", 0.5)
        monkeypatch.setattr(dispatch, "WORKER_FAILURES", 1)
        with (
            WorkerMachine(machine, 1, start=partial(RayWorkers, nodes.ray)) as second,
            pytest.raises(SituateError, match="the cluster has fewer free CPUs than there are"),
        ):
            second.measure(PLACEMENTS, 0)


def test_figures_become_gauges(nodes: Nodes) -> None:
    board = ray_workers._Board()
    for busy in (1.0, 2.0):
        board.show({"workers/busy": busy, "best_seconds": 1.5})
    names = {gauge.info["name"] for gauge in board._gauges.values()}
    assert names == {"situate_workers_busy", "situate_best_seconds"}
    with nodes.workers(SimulatedMachine(PROBLEM)) as machine:
        machine.show({"best_seconds": 1.5})
        machine.measure(PLACEMENTS, 0)


def test_a_process_that_is_connected_already_is_refused(nodes: Nodes) -> None:
    with (
        pytest.raises(SituateError, match=r"connected to a Ray cluster already: call ray\.shut"),
        Place.parse("ray://127.0.0.1:9").machine(SimulatedMachine(PROBLEM)),
    ):
        raise AssertionError
    assert room(nodes.ray) == 2


def test_a_cluster_that_is_lost_ends_the_search_in_a_line(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nodes.workers(SimulatedMachine(PROBLEM)) as machine:
        machine.measure(PLACEMENTS, 0)
        with monkeypatch.context() as lost:
            lost.setattr(nodes.ray, "is_initialized", lambda: False)
            with pytest.raises(SituateError, match=r"^workers: the connection to the Ray cluster"):
                machine.measure(PLACEMENTS, 0)


def test_a_search_on_a_cluster_is_that_of_one_process(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with actors that are killed meanwhile."""
    monkeypatch.setattr(ray_workers, "connected", lambda *_: nullcontext(nodes.ray))
    machine = Sleeping(PROBLEM, 0.1, 3, tmp_path, 0.01)
    with killing(tmp_path, every=0.2, most=2) as killed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = search(None, evaluator=machine, workers="ray:2")
    assert killed
    assert outcome(found) == outcome(search(None))


def test_a_node_that_is_lost_loses_nothing(nodes: Nodes, tmp_path: Path) -> None:
    """The last test of the cluster: it goes on with one node."""
    with nodes.workers(Counting(tmp_path, seconds=0.1)) as machine:
        while len(machine.counts.measured) < 2:  # the workers of both nodes have started
            measured_as_by_one(machine)
        each = machine.measure_each(PLACEMENTS, np.arange(12))
        rows = [next(each)[0] for _ in range(3)]
        nodes.remove_one()
        rows += [found for found, _ in each]
        while not machine.counts.failures:  # processes of the lost node end a little later
            measured_as_by_one(machine)
    assert sorted(np.concatenate(rows)) == list(range(12))


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
    monkeypatch.setattr(ray_workers, "TOKEN", tmp_path / "token")
    if token:
        ray_workers.TOKEN.touch()
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
        ray_workers.connected(address),
    ):
        raise AssertionError
