"""A worker reports why a step failed, and ends with its parent."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import weakref
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from situate.runtime.memory import anonymous_file  # noqa: E402
from situate.runtime.processes.channels import Aborted  # noqa: E402
from situate.runtime.processes.messages import Assignment, FailureReport, Run  # noqa: E402
from situate.runtime.processes.step_devices import LocalDevice  # noqa: E402
from situate.runtime.processes.worker import Work  # noqa: E402
from situate.runtime.step import PlacedStep  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.steps import program, step_of  # noqa: E402


@pytest.fixture
def step() -> PlacedStep:
    model, inputs, _ = MODELS["towers"]()
    record = step_of(program("towers"), model, torch.optim.SGD(model.parameters(), lr=0.1), 1)
    record(*inputs)
    return record


@pytest.fixture
def work(step: PlacedStep) -> Work:
    assert isinstance(step._devices, LocalDevice)
    return step._devices._work


# Reports of failures, in a worker and in this process.
@pytest.mark.parametrize(
    ("error", "reason", "text"),
    [
        (Aborted(), "aborted", ""),
        (torch.OutOfMemoryError("no room"), "out_of_memory", "no room"),
        (MemoryError(), "out_of_memory", "MemoryError: "),
        (
            RuntimeError("[enforce fail] can't allocate memory: 9 bytes"),
            "out_of_memory",
            "allocate",
        ),
        (ValueError("wrong"), "error", "ValueError: wrong"),
    ],
)
def test_a_failure_has_a_reason(
    work: Work, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str, text: str
) -> None:
    def run(*assignment_given: Any, **options: Any) -> None:
        raise type(error)(*error.args)

    monkeypatch.setattr(work._device, "run", run)
    replies = work.run(Run(2, False, None))
    assert isinstance(replies, FailureReport)
    assert replies.reason == reason
    assert text in replies.text


def test_a_failure_in_this_process_is_the_callers_error_and_undone(
    step: PlacedStep, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    from situate.runtime.processes.messages import OutOfMemory

    before = {name: value.clone() for name, value in step.model.state_dict().items()}

    def run_out() -> None:
        raise MemoryError

    monkeypatch.setitem(work._device._names, "commit", run_out)
    _, inputs, _ = MODELS["towers"]()
    with pytest.raises(
        OutOfMemory, match=r"'cpu:0': out of memory in step 2 .* after step 1"
    ) as error:
        step(*inputs)
    assert isinstance(error.value.__cause__, MemoryError)
    assert all(torch.equal(value, before[name]) for name, value in step.model.state_dict().items())
    monkeypatch.undo()
    step(*inputs)
    assert not torch.equal(step.model.state_dict()["head.bias"], before["head.bias"])


def test_an_update_that_fails_in_this_process_is_not_undone_and_says_so(
    step: PlacedStep, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(gradient: torch.Tensor) -> None:
        raise ValueError("broken")

    monkeypatch.setitem(work._device._names, "update0", fail)
    _, inputs, _ = MODELS["towers"]()
    with pytest.raises(SituateError, match=r"step 2 failed: ValueError: broken; .* in part"):
        step(*inputs)


def test_orders_to_a_worker_are_plain_data(step: PlacedStep) -> None:
    assignment: Assignment = step._assignment(*step._used[0], [{"lr": 0.1}])
    again = pickle.loads(pickle.dumps(assignment))  # noqa: S301 - made in this line
    assert again == assignment


# The life of a worker.
def test_a_worker_serves_until_its_parent_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from situate.runtime.processes import worker

    monkeypatch.setattr(worker, "set_up", lambda: None)
    ours, theirs = multiprocessing.Pipe()
    monkeypatch.setattr("situate.runtime.memory.mapped", lambda block: None)
    monkeypatch.setattr(worker, "Work", Echo)
    send_block(ours)
    ours.send(Assignment(None, None, "cpu", torch.get_num_threads(), []))  # type: ignore[arg-type]
    for order in (1, 2):
        ours.send(order)
    answers = []

    class Hangs(worker.Connection):
        def send(self, replies: object) -> None:
            answers.append(replies)
            super().send(replies)
            if len(answers) == 3:
                assert ours.recv() == "ready"
                ours.close()

    monkeypatch.setattr(worker, "Connection", Hangs)
    worker.main(os.dup(theirs.fileno()))
    assert answers == ["ready", ("ran", 1), ("ran", 2)]


@pytest.mark.parametrize("orders", [True, False])
def test_a_worker_whose_parent_is_gone_before_it_is_ready_ends(
    monkeypatch: pytest.MonkeyPatch, orders: bool
) -> None:
    from situate.runtime.processes import worker

    monkeypatch.setattr(worker, "set_up", lambda: None)
    monkeypatch.setattr("situate.runtime.memory.mapped", lambda block: None)
    monkeypatch.setattr(worker, "Work", Echo)
    ours, theirs = multiprocessing.Pipe()
    if orders:
        send_block(ours)
        ours.send(Assignment(None, None, "cpu", torch.get_num_threads(), []))  # type: ignore[arg-type]
    ours.close()
    worker.main(os.dup(theirs.fileno()))


def send_block(connection: Connection) -> None:
    """Send the descriptor of a common memory, which nobody looks into here."""
    block = anonymous_file(64)
    reduction.send_handle(connection, block, os.getpid())
    os.close(block)


class Echo:
    """Repeats its orders."""

    def __init__(self, *assignment_given: object) -> None:
        pass

    def run(self, order: object) -> tuple[str, object]:
        return "ran", order


def test_a_step_that_is_closed_holds_no_memory(step: PlacedStep) -> None:
    """At once, not only when the collector comes: a GPU has no room for two."""
    gc.collect()
    gc.disable()
    try:
        assert isinstance(step._devices, LocalDevice)
        values = weakref.ref(step._devices._work._device)
        step.close()
        assert values() is None
    finally:
        gc.enable()
