"""Whatever happens to a device, nothing hangs, no process is left, and the model is intact."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate import _core  # noqa: E402
from situate.evaluators.measurements import OUTCOMES  # noqa: E402
from situate.runtime.memory import anonymous_file  # noqa: E402
from situate.runtime.processes import step_devices  # noqa: E402
from situate.runtime.processes.messages import Assignment, FailureReport, OutOfMemory, StepFailed  # noqa: E402
from situate.runtime.processes.step_devices import DeviceWorkers, step_failure  # noqa: E402
from situate.runtime.processes.worker_pool import WorkerPool  # noqa: E402
from tests.processes import gone, interrupt_starts, left_of, runs  # noqa: E402
from tests.runtime import misbehaving  # noqa: E402
from tests.runtime.misbehaving import model_parts, optimizer_of, workers  # noqa: E402
from tests.runtime.steps import assert_same, optimizer_snapshot, state, train  # noqa: E402

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Training:
    """A placed step, and a copy of its model that is trained without a placement."""

    def __init__(self) -> None:
        self.model, self.inputs, self.loss = model_parts()
        self.copy = copy.deepcopy(self.model)
        self.optimizer, self.copied = optimizer_of(self.model), optimizer_of(self.copy)
        self.step = misbehaving.step_of(self.model, self.optimizer)
        self.done = 0

    def both(self, steps: int) -> None:
        """Run both; the losses are equal."""
        for _ in range(steps):
            self.done += 1
            expected = train(self.copy, self.inputs, self.loss, self.copied, self.done)
            assert torch.equal(self.step(*self.inputs), expected)

    def assert_same(self) -> None:
        """Model and copy are equal, and so are the optimisers' states."""
        assert_same(state(self.model), state(self.copy))
        assert_same(
            optimizer_snapshot(self.model, self.optimizer),
            optimizer_snapshot(self.copy, self.copied),
        )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file that says which harm to do; processes find the tests' modules."""
    with pytest.MonkeyPatch.context() as patch:
        records = tmp_path_factory.mktemp("harm") / "how"
        patch.setenv(misbehaving.FILE, str(records))
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        patch.setenv("PYTHONPATH", path)
        yield records


@pytest.fixture(scope="module")
def training(file: Path) -> Iterator[Training]:
    """Two processes, which are started anew after each harm."""
    records = Training()
    with records.step:
        yield records


# Faults during steps.
@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("kill", StepFailed, r"its process ended by SIGKILL in step {}; "),
        ("allocate", OutOfMemory, r"out of memory in step {} \(RuntimeError: .*allocate memory"),
        ("run_out", OutOfMemory, r"out of memory in step {} \(CUDA out of memory\); "),
        ("fail", StepFailed, r"step {} failed: ValueError: no such thing; "),
    ],
)
def test_a_step_that_fails_is_undone_and_can_be_repeated(
    training: Training, file: Path, how: str, kind: type[StepFailed], message: str
) -> None:
    training.both(steps=1)
    running = workers(training.step)
    file.write_text(how)
    with pytest.raises(StepFailed, match=message.format(training.done + 1)) as error:
        training.step(*training.inputs)
    assert not file.exists()
    assert str(error.value).startswith("device 'cpu:1': ")
    assert f"the model is as after step {training.done}" in str(error.value)
    assert type(error.value) is kind
    assert error.value.outcome in OUTCOMES
    assert "\n" not in str(error.value)
    training.assert_same()
    assert left_of(running) == []
    training.both(steps=1)


def test_a_worker_that_is_killed_between_steps_is_noticed(training: Training) -> None:
    training.both(steps=1)
    os.kill(workers(training.step)[0], signal.SIGKILL)
    with pytest.raises(StepFailed, match=r"'cpu:0': its process ended by SIGKILL in step "):
        training.step(*training.inputs)
    training.assert_same()
    training.both(steps=1)


@pytest.fixture
def script(file: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that trains in a process group of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.runtime.misbehaving", str(file)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as process:
        yield process
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_an_interrupt_undoes_the_step_and_leaves_nothing(
    script: subprocess.Popen[str], file: Path
) -> None:
    running = until_interrupted(script, file)
    os.killpg(script.pid, signal.SIGINT)
    answer, error = script.communicate(timeout=60)
    assert answer == "undone\n", error
    assert script.returncode == -signal.SIGINT
    assert left_of(running) == []


def test_workers_end_with_a_parent_that_is_killed(
    script: subprocess.Popen[str], file: Path
) -> None:
    running = until_interrupted(script, file)
    assert all(map(runs, running))
    script.kill()
    script.wait()
    assert left_of(running) == []


# Faults during the start.
def test_a_worker_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training()
    monkeypatch.setattr("situate.runtime.step.defining_modules", lambda kernels: ())
    with pytest.raises(
        StepFailed, match=r"'cpu:[01]': its process did not get ready: .*situate_tests"
    ):
        training.step(*training.inputs)
    assert training.step._devices is None


def test_a_worker_that_cannot_start_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training()
    monkeypatch.setattr(step_devices, "STEP_WORKER", "raise SystemExit(7)")
    with pytest.raises(StepFailed, match=r"ended with exit status 7 before it was ready") as error:
        training.step(*training.inputs)
    assert "\n" not in str(error.value)


def test_a_worker_that_ends_while_it_is_told_much_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More than a socket takes at once."""
    monkeypatch.setattr(step_devices, "STEP_WORKER", "raise SystemExit(7)")
    assignment = Assignment(None, "much" * 10**6, "cpu", 1, [])  # type: ignore[arg-type]
    flags, block = _core.threads.make_flags(np.zeros(1, np.uint32)), anonymous_file(64)
    with pytest.raises(StepFailed, match=r"ended with exit status 7 before it was ready"):
        DeviceWorkers(["cpu:0"], [assignment], block, flags)
    os.close(block)


def test_nothing_is_left_of_workers_that_start_when_ctrl_c_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step_devices, "STEP_WORKER", "import time; time.sleep(600)")
    numbers = interrupt_starts(monkeypatch, times=2)
    flags, block = _core.threads.make_flags(np.zeros(1, np.uint32)), anonymous_file(64)
    assignment = Assignment(None, None, "cpu", 1, [])  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        DeviceWorkers(["cpu:0", "cpu:1"], [assignment] * 2, block, flags)
    os.close(block)
    assert len(numbers) == 1
    assert all(map(gone, numbers))


def test_all_workers_start_before_one_is_told_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their assignments may be more than a socket takes before they listen."""
    answer: list[str] = []
    monkeypatch.setattr(WorkerPool, "start", lambda *arguments: answer.append("started"))
    monkeypatch.setattr(WorkerPool, "assign", lambda *arguments: answer.append("told"))
    monkeypatch.setattr(WorkerPool, "answers", lambda *arguments: [])
    assignment = Assignment(None, None, "cpu", 1, [])  # type: ignore[arg-type]
    DeviceWorkers(
        ["cpu:0", "cpu:1"], [assignment] * 2, 0, _core.threads.make_flags(np.zeros(1, np.uint32))
    )
    assert answer == ["started", "started", "told"]


# Texts of errors.
def test_the_words_of_a_failure_are_one_line() -> None:
    for reason, text in (("error", ""), ("error", "\n\n"), ("out_of_memory", " a\nb")):
        records = str(step_failure("gpu", FailureReport(reason, text), 5, undone=True))
        assert "\n" not in records
        assert records.startswith("device 'gpu': ")
        assert "the model is as after step 4" in records


def test_a_failure_that_is_not_undone_says_so() -> None:
    records = str(step_failure("gpu", FailureReport("error", "no"), 5, undone=False))
    assert "the model may be updated in part, so load what was saved last" in records


def until_interrupted(script: subprocess.Popen[str], file: Path) -> list[int]:
    """The ids of a script's workers, once they are in the middle of a step."""
    assert script.stdout is not None
    line = script.stdout.readline()
    records = [int(word) for word in line.split()]
    assert len(records) == 2, script.communicate()[1]
    deadline = time.monotonic() + 60.0
    while file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not file.exists()
    return records
