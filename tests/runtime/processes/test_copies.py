"""Copies beside what a device computes, on one that makes them as late as it may."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.processes import copies  # noqa: E402
from tests.runtime.gpus import needs_gpus  # noqa: E402

compiled = pytest.mark.usefixtures("apart")
kinds = pytest.mark.parametrize(
    "kind", ["apart", pytest.param("cuda", marks=needs_gpus(1))], indirect=True
)

HEAD = """
import torch
from situate.runtime.processes.copies import Copies

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


def run(text: str, kind: str = "apart") -> None:
    """In a process of its own, for a process has that device to its end."""
    backend = "import tests.runtime.apart.backend\n" if kind == "apart" else ""
    code = backend + HEAD.format(kind=kind) + text
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@kinds
def test_what_is_written_is_there_when_it_is_said(kind: str) -> None:
    run(
        """
copies.write(slots[0], ones * 3, lambda: written.append(slots[0].tolist()))
copies.settle()
assert written == [[3.0] * 4], written
""",
        kind,
    )


@kinds
def test_what_is_read_is_what_was_in_the_slot(kind: str) -> None:
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
def test_a_tensor_is_overwritten_when_it_has_left(waits: bool) -> None:
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
def test_what_a_copy_fails_with_is_raised(kind: str) -> None:
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
def test_who_waits_hears_of_a_copy_that_failed(kind: str) -> None:
    run(
        """
import numpy as np
from situate import _core
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
def test_layouts_may_differ(of_slot: bool, kind: str) -> None:
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


def test_slots_are_locked_from_the_first_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, ...]] = []
    cuda = SimpleNamespace(
        cudaHostRegister=lambda *given: said.append(given),
        cudaHostUnregister=lambda *given: said.append(given),
    )
    monkeypatch.setattr(torch.cuda, "cudart", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "check_error", lambda code: None)
    monkeypatch.setattr(torch.cuda, "device", nullcontext)
    block = torch.zeros(100, dtype=torch.uint8).numpy()
    slots = [torch.frombuffer(block, dtype=torch.uint8, count=8, offset=k) for k in (40, 16)]
    begin = slots[1].data_ptr()
    unlock = copies._lock(torch.device("cuda"), [torch.empty(0), *slots])
    assert said == [(begin, 32, 0)]
    unlock()
    assert said[1:] == [(begin,)]


def test_memory_that_cannot_be_locked_is_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(code: int) -> None:
        raise RuntimeError(f"CUDA error: {code}")

    cuda = SimpleNamespace(cudaHostRegister=lambda *given: 2)
    monkeypatch.setattr(torch.cuda, "cudart", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "check_error", refuse)
    monkeypatch.setattr(torch.cuda, "device", nullcontext)
    with pytest.raises(MemoryError, match="32 bytes of the host cannot be locked: CUDA error: 2"):
        copies._lock(torch.device("cuda"), [torch.empty(8)])


def test_nothing_is_locked_where_nothing_crosses() -> None:
    copies._lock(torch.device("cuda"), [torch.empty(0)])()
