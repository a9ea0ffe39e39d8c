"""Several machines as one evaluator, each a core of this machine, with real processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.cluster import Cluster, Device  # noqa: E402
from situate.data.problem import Problem  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.evaluators.hardware.machine import Measurement  # noqa: E402
from situate.evaluators.hardware.machines import RealMachines, _crash_measurements  # noqa: E402
from situate.evaluators.hardware.reservation import usable_cores  # noqa: E402
from situate.evaluators.measurements import MeasuresEach, MeasuresElsewhere  # noqa: E402
from situate.evaluators.workers import dispatch  # noqa: E402
from situate.runtime.subject import find_subject  # noqa: E402
from situate.solvers import solve  # noqa: E402
from situate.solvers.learned.learner import Learning  # noqa: E402
from situate.study import Study  # noqa: E402
from tests.evaluators.harmed_once import FOLDER, end_device, end_worker, hang, order  # noqa: E402

ROOT = Path(__file__).parents[3]
MODEL = "tests.evaluators.harmed_once:build:inference"
LIMIT = 4.0

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(usable_cores()) < 2, reason="two workers own two cores of Linux"
)


def cluster(threads: int | None = 1) -> Cluster:
    """A core of this machine."""
    device = Device("cpu", kind="cpu", flops={"float32": 1e10}, bandwidth=1e10, threads=threads)
    return Cluster("one core", (device,))


@pytest.fixture(scope="module", autouse=True)
def _harm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The folder of the modules, and the folder of the orders to workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setenv(FOLDER, str(tmp_path_factory.mktemp("harm")))
        yield


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(find_subject(MODEL).program.graph, cluster())


@pytest.fixture(scope="module")
def machines(problem: Problem) -> Iterator[RealMachines]:
    """Two workers, both of which have measured."""
    with RealMachines(problem, MODEL, 2, limit=LIMIT) as machines_started:
        while len(machines_started.met) < 2:
            run(machines_started, 2)
            assert not machines_started.counts.left_out
            time.sleep(1.0)  # else the first worker measures on and on while the second starts
        yield machines_started


def run(machines: RealMachines, count: int) -> list[Measurement]:
    """The placement that there is, measured so often."""
    before = len(machines.log)
    measurement = machines.measure(np.zeros((count, machines.problem.n), np.int32), 0)
    assert len(measurement) == count
    return machines.log[before:]


def failures(machines: RealMachines) -> int:
    return sum(machines.counts.failures.values())


# Workers with equal and unequal speed, and the second measurement of a best placement.
def test_workers_own_different_cores_and_say_how_fast_they_are(machines: RealMachines) -> None:
    assert isinstance(machines, MeasuresEach)
    assert isinstance(machines, MeasuresElsewhere)
    assert len({worker.place.rpartition("cores ")[2] for worker in machines.met}) == 2
    assert all(0 < worker.reference < np.inf for worker in machines.met)
    assert f"torch {torch.__version__}; cpu = cpu x 1; 3 to 10 steps" in machines.name


def test_a_best_placement_is_measured_again_by_another_worker(machines: RealMachines) -> None:
    one = np.zeros(machines.problem.n, np.int32)
    for worker in machines.met[:2]:
        again = machines.measure_elsewhere(one, 0, worker)
        assert again.origins[0] is not None
        assert again.origins[0].place != worker.place


def test_a_search_keeps_who_measured_and_counts_no_best_that_was_measured_once(
    machines: RealMachines, problem: Problem, tmp_path: Path
) -> None:
    learning = Learning(evaluator=machines, study=tmp_path / "study")
    result = solve(problem, "post", evaluations=6, learning=learning)
    study = Study.read(tmp_path / "study")
    assert len(study.workers) == 2
    assert all(origin in study.workers for origin in study.measurements.origins)
    arguments, once = result.samples, study.measurements.seconds
    assert arguments[once.argmin()] != once.min()
    assert (
        solve(problem, "post", evaluations=6, learning=learning).samples.tolist()
        == arguments.tolist()
    )
    assert 0 < machines.run(result.schedule).seconds < np.inf


# Faults of devices and workers cost no measurement.
def test_devices_that_end_or_hang_are_results(
    machines: RealMachines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "SLOW_SECONDS", 100.0)  # nobody measures the same meanwhile
    before = failures(machines)
    order(end_device)
    order(hang)
    measurements = run(machines, 5)
    assert {one.outcome for one in measurements} == {"crash", "ok", "timeout"}
    assert f"not measured within {LIMIT:g} s" in [one.failure for one in measurements]
    assert failures(machines) == before


def test_a_worker_that_is_killed_while_it_measures_loses_nothing(machines: RealMachines) -> None:
    before = failures(machines)
    order(end_worker)
    assert [one.outcome for one in run(machines, 4)] == ["ok"] * 4
    assert failures(machines) == before + 1


def test_a_placement_that_ends_every_worker_counts_as_a_crash() -> None:
    lost = _crash_measurements("3 workers failed at it")
    assert not lost.ok.any()
    assert lost.details[0].failure == "3 workers failed at it"


# Requests beyond this machine's cores are refused.
def test_more_workers_than_cores_are_refused(problem: Problem) -> None:
    with pytest.raises(SituateError, match=r"^--workers: 4000 would need 4000 cores, 1 for the"):
        RealMachines(problem, MODEL, 4000)


def test_a_device_that_takes_all_cores_is_refused(problem: Problem) -> None:
    greedy = Problem(problem.graph, cluster(threads=None))
    with pytest.raises(SituateError, match=r"device 'cpu' of cluster 'one core' takes all cores"):
        RealMachines(greedy, MODEL, 2)
