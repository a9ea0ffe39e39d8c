"""A device runs its share of a step; the shares of a placed step; clocks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate import _core  # noqa: E402
from situate.runtime.device import (  # noqa: E402
    Device,
    Share,
    device_clock,
    share_of,
)
from situate.runtime.processes.channels import Channels  # noqa: E402
from situate.runtime.programs.placed import PlacedProgram  # noqa: E402
from situate.runtime.programs.seeds import kept_generator, seed_of  # noqa: E402
from tests.runtime.model_state.entries import entry  # noqa: E402
from tests.runtime.steps import DEVICES, cut, program  # noqa: E402

CPU = torch.device("cpu")
SGD = {"lr": 0.5, "momentum": 0.0, "weight_decay": 0.0, "maximize": False, "nesterov": False}

TEXT = """def step():
    v0 = f0(x0, p0)
    seed0()
    v1 = f1(c0)
    done0(v0)
    done1(v1)
    update0(v0)
"""


class One:
    """A device that adds its input to a parameter, draws, and updates."""

    def __init__(self, text: str = TEXT, timed: str = TEXT) -> None:
        self.done: list[torch.Tensor] = []
        self.entry = entry(torch.ones(3), "sgd")
        kernels = ("aten::add.Tensor", "aten::rand", "aten::mm", "aten::unsqueeze")
        share = Share(text, timed, kernels, ((2,),), {0: 0}, "sgd", 0, 1, 9)
        channels = Channels(_core.threads.make_flags(np.zeros(1, np.uint32)), [], CPU)
        results = [lambda value: self.done.append(value.clone())] * 2
        self.device = Device(share, [self.entry], channels, [SGD], results, CPU)

    def run(self, step: int, **options: Any) -> Any:
        with kept_generator():
            return self.device.run(step, [torch.arange(3.0)], **options)


# A share written by hand.
def test_a_share_computes_and_updates() -> None:
    one = One()
    one.run(1)
    assert one.done[0].tolist() == [1.0, 2.0, 3.0]
    assert one.entry.value.tolist() == [0.5, 0.0, -0.5]
    one.device.tell([{**SGD, "lr": 0.0}])
    one.run(2)
    assert one.entry.value.tolist() == [0.5, 0.0, -0.5]


def test_draws_are_of_the_seed_the_step_and_the_draw() -> None:
    one = One()
    one.run(4)
    with kept_generator():
        torch.manual_seed(seed_of(9, 4, 0))
        assert torch.equal(one.done[1], torch.rand(2))


def test_times_are_of_this_step_alone() -> None:
    one = One(
        timed=TEXT.replace("    seed0()", "    began[7] = now()\n    ended[7] = now()\n    seed0()")
    )
    first = one.run(1, timed=True)
    assert first.start <= first.op_starts[7] <= first.op_ends[7] <= first.end
    second = one.run(2)
    assert (second.op_starts, second.op_ends) == ({}, {})
    assert first.op_starts.keys() == {7}


def test_no_gradient_is_recorded() -> None:
    one = One()
    one.entry.value.requires_grad_()
    one.run(1)
    assert not one.done[0].requires_grad


def test_autocast_around_a_step_is_none_of_it() -> None:
    """The step was captured without autocast, which decides its computations."""
    one = One("def step():\n    done0(f2(f3(x0, 0), f3(p0, 1)))\n")
    with torch.autocast("cpu"):
        one.run(1)
    assert one.done[0].dtype == torch.float32


def test_a_gpu_is_the_current_one_while_its_share_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of a user's own may ask for it, and would else run on the first."""
    current, seeds = ["cuda:0"], []

    class Module:
        synchronize = staticmethod(lambda device: None)

        @staticmethod
        @contextlib.contextmanager
        def device(device: torch.device) -> Iterator[None]:
            current.append(str(device))
            yield
            current.pop()

    one = One("def step():\n    seen()\n")
    one.device._device = torch.device("cuda:1")
    one.device._names["seen"] = lambda: seeds.append(current[-1])
    monkeypatch.setattr(torch, "get_device_module", lambda device: Module)
    one.run(1)
    assert (seeds, current) == (["cuda:1"], ["cuda:0"])


def test_an_input_that_nothing_here_reads_is_not_taken_to_the_device() -> None:
    one = One(TEXT.replace("x0", "x1"))
    missing, clocks = torch.empty(3, device="meta"), torch.arange(3.0)
    with kept_generator():
        one.device.run(1, [missing, clocks])
    assert one.done[0].tolist() == [1.0, 2.0, 3.0]


def shares(name: str) -> tuple[PlacedProgram, list[Share]]:
    """The shares of two devices; the parameters are in groups 0 and 1 by turns."""
    record = program(name)
    cut_program = cut(record, 2)
    groups = {number: number % 2 for number in cut_program.updated}
    return cut_program, [
        share_of(cut_program, d, DEVICES[d], groups, seed=3, commits=False) for d in range(2)
    ]


# The shares of a captured step.
def test_every_parameter_is_held_and_updated_by_one_device() -> None:
    cut_program, (one, other) = shares("towers")
    assert not one.here & other.here
    assert one.here | other.here == frozenset(cut_program.names.state.values())
    assert {**one.updates, **other.updates} == {k: k % 2 for k in cut_program.updated}
    assert all(share.updates.keys() <= share.here for share in (one, other))


def test_a_running_mean_is_overwritten_where_it_is_held() -> None:
    cut_program, record = shares("convolutional")
    assert cut_program.overwritten
    assert frozenset().union(*(share.copied for share in record)) == cut_program.overwritten
    assert all(share.copied <= share.here for share in record)


def test_only_the_timed_text_reads_the_clock() -> None:
    _, record = shares("towers")
    assert all("now()" in share.timed and "now()" not in share.text for share in record)


def test_all_draw_by_the_same_seed() -> None:
    assert [share.seed for share in shares("towers")[1]] == [3, 3]


# Clocks of CPUs and GPUs.
def test_a_cpus_clock_is_that_of_module_time() -> None:
    assert device_clock("perf_counter", torch.device("cpu")) is time.perf_counter
    assert device_clock("thread_time", torch.device("cpu")) is time.thread_time


def test_a_gpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    gpu = torch.device("cuda:1")
    before = time.perf_counter()
    assert device_clock("perf_counter", gpu)() >= before
    assert waited == [gpu]
