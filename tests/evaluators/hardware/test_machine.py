"""This machine as an evaluator: every placement has a result, even a failing one."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")

from situate.data.cluster import Cluster, Device  # noqa: E402
from situate.data.problem import Problem  # noqa: E402
from situate.data.rules import RULES  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.evaluators.hardware import workers  # noqa: E402
from situate.evaluators.hardware.machine import RealMachine  # noqa: E402
from situate.evaluators.measurements import OUTCOMES  # noqa: E402
from situate.evaluators.steps import Steps  # noqa: E402
from situate.evaluators.workers.machine import WorkerMachine  # noqa: E402
from situate.runtime.processes.worker_pool import Worker, WorkerPool  # noqa: E402
from situate.runtime.subject import Subject, find_subject  # noqa: E402
from situate.study import Study  # noqa: E402
from tests.evaluators.hardware_search import CPUS, MODEL, SAMPLES, machine, search  # noqa: E402
from tests.processes import left_of  # noqa: E402

ROOT = Path(__file__).parents[3]
HARM = "tests.evaluators.misbehaving:build"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module", autouse=True)
def _at_the_root() -> Iterator[None]:
    """The folder in which the tests' modules are found, also by the devices' processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the files by which harm is told of."""
    folder = tmp_path_factory.mktemp("harm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SITUATE_TEST_CHILDREN", str(folder / "children"))
        patch.setenv("SITUATE_TEST_COUNTS", str(folder / "counts"))
        patch.setattr(workers, "VMSTAT", folder / "counts")
        (folder / "counts").write_text("oom_kill 0\n")
        yield folder


@pytest.fixture(scope="module")
def harm() -> Subject:
    """The model that does harm."""
    return find_subject(f"{HARM}:inference")


@pytest.fixture(scope="module")
def harmful(harm: Subject, files: Path) -> Iterator[RealMachine]:
    """The machine with that model."""
    with machine(harm) as measuring:
        yield measuring


@pytest.fixture(scope="module")
def gentle() -> Subject:
    """A small model that does none."""
    return find_subject(MODEL)


def placements(measuring: RealMachine, *ways: str) -> NDArray[np.int32]:
    """One a way: the operator of that name on the second device, all else on the first."""
    kinds = [op.kind.rpartition(".")[2] for op in measuring.problem.graph.ops]
    assert all(way in kinds for way in ways if way)
    return np.array([[int(kind == way) for kind in kinds] for way in ways], np.int32)


# Failures: each becomes an outcome, and later placements run in fresh processes.
@pytest.mark.parametrize(
    ("way", "outcome", "words"),
    [
        ("crash", "crash", "'cpu:1': its process ended by SIGSEGV"),
        ("no_memory", "out_of_memory", "can't allocate memory"),
        ("killed", "out_of_memory", "'cpu:1': its process ended by SIGKILL"),
        ("no_number", "nan", "the loss of step 1 is nan"),
    ],
)
def test_a_failure_is_a_result_and_the_next_placement_is_none_the_worse(
    harmful: RealMachine, way: str, outcome: str, words: str
) -> None:
    measurement = harmful.measure(placements(harmful, way, ""), 0)
    assert [OUTCOMES[i] for i in measurement.outcome] == [outcome, "ok"]
    assert np.isinf(measurement.seconds).tolist() == [True, False]
    assert words in harmful.log[-2].failure


def test_a_hanging_placement_is_ended_with_all_its_processes(harm: Subject, files: Path) -> None:
    with machine(harm, limit=8.0) as measuring:
        measuring.measure(placements(measuring, "hang"), 0)
    assert measuring.log[0].outcome == "timeout"
    assert "not measured within 8 s" in measuring.log[0].failure
    workers_started = [int(word) for word in (files / "children").read_text().split()]
    assert len(workers_started) == 2
    assert left_of(workers_started) == []


def test_processes_serve_until_they_are_not_wanted(
    gentle: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers_started: list[str] = []

    class CountingMachine(WorkerPool):
        def start(self, name: str, *rest: Any) -> Worker:
            workers_started.append(name)
            return super().start(name, *rest)

    monkeypatch.setattr(workers, "WorkerPool", CountingMachine)
    both = np.zeros((2, len(gentle.program.graph.ops)), np.int32)
    with machine(gentle) as parameters_before:
        parameters_before.measure(both, 0)
    assert workers_started == ["cpu:0"]
    with machine(gentle, fresh=True) as fresh:
        fresh.measure(both, 0)
    assert workers_started == ["cpu:0"] * 3


# Measurements: the rule of steps, the model's unchanged parameters, and the study.
def test_by_a_rule_of_steps_so_many_are_timed_after_those_that_are_dropped(
    gentle: Subject,
) -> None:
    one = np.zeros((1, len(gentle.program.graph.ops)), np.int32)
    with machine(gentle) as measuring:
        counting = measuring.by(Steps(dropped=2, timed=7, window=3))
        assert counting.measure(one, 0).ok.all()
        assert measuring.log[-1].steps == 7
    assert "least mean of 3 in a row of 7 steps after 2" in counting.name
    assert "3 to 10 steps" in measuring.name


def test_a_measurement_leaves_the_numbers_of_the_model(files: Path) -> None:
    subject = find_subject(HARM)
    before = [tensor.detach().clone() for tensor in subject.model.parameters()]
    with machine(subject) as measuring:
        measuring.measure(placements(measuring, ""), 0)
        (one,) = measuring.log
    assert one.outcome == "ok"
    assert 0 < one.seconds < np.inf
    assert one.steps >= 3
    after = list(subject.model.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_search_that_was_killed_goes_on_from_its_study(tmp_path: Path) -> None:
    study = tmp_path / "study"
    command = [sys.executable, "-m", "tests.evaluators.hardware_search", str(study)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"12\n"
        devices = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        offered = [Path(f"/proc/{device}/oom_score_adj").read_text() for device in devices]
        process.send_signal(signal.SIGKILL)
    assert offered == ["1000\n"] * 2
    before = Study.read(study)
    assert 12 <= len(before) < SAMPLES
    assert left_of(map(int, devices)) == []
    calls: list[int] = []
    result = search(study, lambda first, measurement: calls.append(first + len(measurement)))
    after = Study.read(study)
    assert len(after) == SAMPLES
    assert calls == [12, 18]
    parameters_before = after.measurements.seconds[: len(before)]
    assert np.array_equal(parameters_before, before.measurements.seconds)
    assert result.measured is not None
    assert 0 < result.measured < np.inf


def test_a_machine_says_what_changes_its_measurements(gentle: Subject) -> None:
    name = machine(gentle, limit=7.0).name
    assert f"torch {torch.__version__}; cpu:0 = cpu x 1, cpu:1 = cpu x 1; 3 to 10 steps" in name
    assert "limit 7.0" in name


# Problems that this machine cannot run are refused.
def test_a_graph_of_another_model_is_refused(gentle: Subject) -> None:
    other = Problem(find_subject("tests.evaluators.hardware_search:build").program.graph, CPUS)
    with pytest.raises(SituateError, match="is not that of the model 'tests"):
        RealMachine(other, gentle)


def test_a_machine_of_this_process_is_not_copied_to_workers(gentle: Subject) -> None:
    with pytest.raises(SituateError, match=r"give RealMachines\(problem, model, workers\) as the"):
        WorkerMachine(machine(gentle), 2)


def test_rules_that_nothing_runs_by_are_refused(gentle: Subject) -> None:
    atomic = Problem(gentle.program.graph, CPUS, rules=RULES["dnn-partitioning"])
    with pytest.raises(SituateError, match="rules 'dnn-partitioning': nothing runs by them"):
        RealMachine(atomic, gentle)


@pytest.mark.skipif(torch.cuda.is_available(), reason="the devices are here")
def test_devices_that_are_not_here_are_refused(gentle: Subject) -> None:
    device = Device("gpu0", flops={"float32": 1e12}, bandwidth=1e11)
    elsewhere = Problem(gentle.program.graph, Cluster("elsewhere", (device,)))
    with pytest.raises(SituateError, match="this machine has 0 CUDA devices"):
        RealMachine(elsewhere, gentle)
