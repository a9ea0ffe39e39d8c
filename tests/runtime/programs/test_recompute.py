"""Placed steps whose blocks run again, against PyTorch's, which keep all."""

from __future__ import annotations

import functools

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.data.slices import Slices  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
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
    name: (functools.partial(in_one_block, name), "0")
    for name in ("convolutional", "gated", "odd", "relative")
}
"""Models, and what of them runs again."""


@functools.cache
def program(name: str, cut: bool) -> Program:
    build, path = CASES[name]
    model, inputs, loss = build()
    slices = Slices((len(inputs[0]) - 2, 2), loss="mean") if cut else None
    return capture_program(model, inputs, loss, name=name, slices=slices, recompute=[path])


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_three_steps_are_equal_to_the_last_bit(
    processes: StartDevices, name: str, cut: bool, devices: int
) -> None:
    model, inputs, loss = CASES[name][0]()
    found = program(name, cut)
    assert any(op.recompute for op in found.graph.ops)
    start = processes if devices > 1 else None
    step = functools.partial(step_of, found, devices=devices, start=start, seed=devices)
    same = compare(model, inputs, loss, sgd, step, threads=1, slices=found.graph.slices)
    assert same.within(0.0)
