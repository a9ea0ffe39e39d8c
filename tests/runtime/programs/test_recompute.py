"""Placed steps with recomputed blocks, against PyTorch's steps without."""

from __future__ import annotations

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.data.slices import Slices  # noqa: E402
from situate.runtime.equality import UnplacedOptions, compare  # noqa: E402
from situate.runtime.programs.footprint import footprint  # noqa: E402
from situate.runtime.programs.placed import place  # noqa: E402
from situate.runtime.programs.program import Program, capture_program  # noqa: E402
from situate.runtime.step import StartDevices  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.placing import sgd  # noqa: E402
from tests.runtime.steps import step_of  # noqa: E402
from tests.torch_capture.recompute.models import blocks  # noqa: E402


def in_one_block(name: str):
    """One of `MODELS`, all of it a block of a model."""
    model, inputs, loss = MODELS[name]()
    return nn.Sequential(model), inputs, loss


CASES = {"blocks": (blocks, "layers.*")} | {
    name: (functools.partial(in_one_block, name), "0") for name in ("convolutional", "odd")
}
"""Models, and their modules that run again."""


@functools.cache
def program(name: str, cut: bool) -> Program:
    build, path = CASES[name]
    model, inputs, loss = build()
    slices = Slices((len(inputs[0]) - 2, 2), loss="mean") if cut else None
    return capture_program(model, inputs, loss, name=name, slices=slices, recompute=[path])


# Equal numbers with less memory.
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_three_steps_are_equal_to_the_last_bit(
    processes: StartDevices, name: str, cut: bool, devices: int
) -> None:
    model, inputs, loss = CASES[name][0]()
    equality = program(name, cut)
    assert any(op.recompute for op in equality.graph.ops)
    start = processes if devices > 1 else None
    step = functools.partial(step_of, equality, devices=devices, start=start, seed=devices)
    same = compare(
        model,
        inputs,
        loss,
        sgd,
        step,
        threads=1,
        unplaced=UnplacedOptions(slices=equality.graph.slices),
    )
    assert same.within(0.0)


def test_replicas_whose_blocks_run_again_are_equal_to_the_last_bit() -> None:
    model, inputs, loss = blocks()
    slices = Slices((1,) * 4, loss="mean", replicas=(2, 2), once=("head.*",))
    equality = capture_program(
        model, inputs, loss, optimizer="adam", slices=slices, recompute=["layers.*"]
    )
    step = functools.partial(step_of, equality, devices=1)
    adam = torch.optim.Adam
    same = compare(
        model,
        inputs,
        loss,
        adam,
        step,
        threads=1,
        unplaced=UnplacedOptions(slices=equality.graph.slices),
    )
    assert {op.replica for op in equality.graph.ops} == {None, 0, 1}
    assert any(op.recompute for op in equality.graph.ops)
    assert len(same.copies) > 0
    assert same.within(0.0)


def nbytes(*recompute: str) -> int:
    """Bytes of the program on one device, in the program's order."""
    model, (x, y), loss = blocks()
    batch = x.repeat(32, 1), y.repeat(32)
    equality = capture_program(model, batch, loss, recompute=recompute)
    n = len(equality.graph.ops)
    (most,) = footprint(place(equality, np.zeros(n, np.int32), range(n), 1), np.zeros(n, np.int64))
    return most


def test_a_device_holds_less() -> None:
    assert nbytes("layers.*") < 0.8 * nbytes()
