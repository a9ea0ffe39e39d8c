"""Channels, and copies concurrent with computing, on a device that delays them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate import _core  # noqa: E402
from situate.runtime.processes import channels as channels_module  # noqa: E402
from situate.runtime.processes.channels import ABORT_FLAG, Aborted, Channels  # noqa: E402
from tests.forks import Starter  # noqa: E402
from tests.runtime.gpus import needs_gpus  # noqa: E402

compiled = pytest.mark.usefixtures("apart")
kinds = pytest.mark.parametrize(
    "kind", ["apart", pytest.param("cuda", marks=needs_gpus(1))], indirect=True
)

HEAD = """
import torch
from situate.runtime.processes.channels import Copies

device = torch.device("{kind}:0")
slots = list(torch.zeros(2, 4))
copies, written = Copies(device, slots), []
ones = torch.ones(4, device=device)
"""


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """The device of a test that knows several: the tests' own is compiled first."""
    name = str(request.param)
    if name == "apart":
        request.getfixturevalue("apart")
    return name


Run = Callable[..., None]


@pytest.fixture
def run(processes_of_tests: Starter) -> Run:
    """Runs code in a process of its own, for a process has that device to its end."""

    def run(text: str, kind: str = "apart") -> None:
        backend = "import tests.runtime.apart.backend\n" if kind == "apart" else ""
        assert processes_of_tests.run(backend + HEAD.format(kind=kind) + text) == 0

    return run


# Copies on a stand-in for a GPU.
@kinds
def test_a_write_is_complete_when_it_is_announced(run: Run, kind: str) -> None:
    run(
        """
copies.write(slots[0], ones * 3, lambda: written.append(slots[0].tolist()))
copies.settle()
assert written == [[3.0] * 4], written
""",
        kind,
    )


@kinds
def test_a_read_copies_the_slot(run: Run, kind: str) -> None:
    run(
        """
slots[1].fill_(5.0)
read = copies.read(slots[1])
assert (read + ones).cpu().tolist() == [6.0] * 4
del read
torch.get_device_module(device).synchronize()
""",
        kind,
    )


@compiled
@pytest.mark.parametrize("waits", [True, False])
def test_a_tensor_is_overwritten_when_it_has_left(run: Run, waits: bool) -> None:
    run(f"""
copies._thread.submit(lambda: __import__("time").sleep(1.0))
copies.write(slots[0], ones, lambda: None)
if {waits}:
    copies.wait_until_left(ones)
ones += 1
copies.settle()
assert slots[0].tolist() == [1.0 if {waits} else 2.0] * 4, slots[0]
""")


@kinds
def test_the_error_of_a_copy_is_raised(run: Run, kind: str) -> None:
    run(
        """
copies.write(slots[0], ones, lambda: 1 / 0)
try:
    copies.settle()
except ZeroDivisionError:
    copies.settle()
else:
    raise AssertionError
""",
        kind,
    )


@kinds
def test_a_waiting_receiver_gets_the_error_of_a_copy(run: Run, kind: str) -> None:
    run(
        """
import numpy as np
from situate import _core  # noqa: E402
from situate.runtime.processes.channels import Channels

channels = Channels(_core.threads.make_flags(np.zeros(3, np.uint32)), slots, device)
channels.step = 1
channels._copies.write(slots[0], ones, lambda: 1 / 0)
try:
    channels.taker(1)()
except ZeroDivisionError:
    pass
else:
    raise AssertionError
""",
        kind,
    )


@kinds
@pytest.mark.parametrize("of_slot", [True, False])
def test_layouts_may_differ(run: Run, of_slot: bool, kind: str) -> None:
    run(
        f"""
of_slot = {of_slot}
gaps, given = torch.zeros(4, 2)[:, 0], torch.arange(4.0)
slot = gaps if of_slot else torch.zeros(4)
sent = given.to(device) if of_slot else torch.zeros(4, 2, device=device)[:, 0].copy_(given)
copies.write(slot, sent, lambda: None)
del sent
copies.settle()
assert slot.tolist() == given.tolist(), slot
assert copies.read(slot).cpu().tolist() == given.tolist()
""",
        kind,
    )


# Page locking, with CUDA's calls replaced.
def test_slots_are_locked_from_the_first_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, ...]] = []
    cuda = SimpleNamespace(
        cudaHostRegister=lambda *arguments: calls.append(arguments),
        cudaHostUnregister=lambda *arguments: calls.append(arguments),
    )
    monkeypatch.setattr(torch.cuda, "cudart", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "check_error", lambda code: None)
    monkeypatch.setattr(torch.cuda, "device", nullcontext)
    block = torch.zeros(100, dtype=torch.uint8).numpy()
    slots = [torch.frombuffer(block, dtype=torch.uint8, count=8, offset=k) for k in (40, 16)]
    begin = slots[1].data_ptr()
    unlock = channels_module._lock(torch.device("cuda"), [torch.empty(0), *slots])
    assert calls == [(begin, 32, 0)]
    unlock()
    assert calls[1:] == [(begin,)]


def test_memory_that_cannot_be_locked_is_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(code: int) -> None:
        raise RuntimeError(f"CUDA error: {code}")

    cuda = SimpleNamespace(cudaHostRegister=lambda *arguments: 2)
    monkeypatch.setattr(torch.cuda, "cudart", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "check_error", refuse)
    monkeypatch.setattr(torch.cuda, "device", nullcontext)
    with pytest.raises(MemoryError, match="32 bytes of the host cannot be locked: CUDA error: 2"):
        channels_module._lock(torch.device("cuda"), [torch.empty(8)])


def test_nothing_is_locked_where_nothing_crosses() -> None:
    channels_module._lock(torch.device("cuda"), [torch.empty(0)])()


CPU = torch.device("cpu")


class Pair:
    """Two devices with two channels."""

    def __init__(self) -> None:
        self.flags = _core.threads.make_flags(np.zeros(3, np.uint32))
        self.slots = [torch.zeros(4), torch.zeros(2, 3).t()]
        self.sends, self.takes = (Channels(self.flags, self.slots, CPU) for _ in range(2))
        self.sends.step = self.takes.step = 1


@pytest.fixture
def pair() -> Pair:
    return Pair()


# Channels between CPU devices.
def test_a_channel_delivers_the_tensor(pair: Pair) -> None:
    pair.sends.sender(0)(torch.arange(4.0))
    pair.sends.sender(1)(torch.arange(6.0).view(3, 2))
    assert pair.takes.taker(1)().tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert pair.takes.taker(0)().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_it_is_read_where_it_was_written(pair: Pair) -> None:
    pair.sends.sender(0)(torch.arange(4.0))
    assert pair.takes.taker(0)().data_ptr() == pair.slots[0].data_ptr()


def test_a_tensor_is_taken_once_it_is_posted(pair: Pair) -> None:
    pair.sends.memory(0).fill_(3.0)
    pair.sends.poster(0)()
    assert pair.takes.taker(0)().tolist() == [3.0] * 4


def test_a_check_does_not_spin() -> None:
    spin = 30.0
    began = time.perf_counter()
    assert not _core.threads.make_flags(np.zeros(1, np.uint32), spin).wait(ABORT_FLAG, 1, 0.0)
    assert time.perf_counter() - began < spin


# Waiting and aborted steps.
def test_a_receiver_waits_for_its_step(pair: Pair) -> None:
    pair.sends.sender(0)(torch.zeros(4))
    pair.sends.step = pair.takes.step = 2
    later = threading.Timer(0.05, lambda: pair.sends.sender(0)(torch.full((4,), 2.0)))
    later.start()
    assert pair.takes.taker(0)().tolist() == [2.0] * 4
    assert pair.takes.waited > 0
    assert pair.sends.waited == 0
    later.join()


def test_a_waiting_receiver_gets_the_abort(pair: Pair) -> None:
    later = threading.Timer(0.05, lambda: pair.flags.post(ABORT_FLAG, 1))
    later.start()
    with pytest.raises(Aborted):
        pair.takes.taker(0)()
    later.join()


def test_a_step_given_up_earlier_does_not_matter(pair: Pair) -> None:
    pair.flags.post(ABORT_FLAG, 1)
    pair.sends.step = pair.takes.step = 2
    pair.sends.sender(0)(torch.ones(4))
    assert pair.takes.taker(0)().tolist() == [1.0] * 4
