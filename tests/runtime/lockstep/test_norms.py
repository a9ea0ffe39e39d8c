"""Steps of slices whose batch norms take their statistics over the batch: against the step of the
whole batch, and against the loop of slices that run in lockstep."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from situate.data.slices import Slices  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.runtime.programs.program import Program, capture_program  # noqa: E402
from situate.runtime.step import StartDevices  # noqa: E402
from tests.runtime.lockstep.models import branching, residual  # noqa: E402
from tests.runtime.placing import sgd  # noqa: E402
from tests.runtime.steps import step_of  # noqa: E402
from tests.torch_capture.recompute.models import blocks  # noqa: E402

WHOLE = 1e-5
"""The largest difference from the whole batch's step, where numbers add up in another order."""

Build = Callable[[], Any]


def program(build: Build, shares: tuple[int, ...], *again: str, **more: Any) -> Program:
    slices = Slices(shares, batch_norm="batch", **more)
    return capture_program(*build(), slices=slices, recompute=again)


def test_a_step_is_that_of_the_whole_batch():
    found = program(residual, (5, 1, 2))
    assert not any(text.startswith("slices: ") for text in found.graph.warnings)
    same = compare(*residual(), sgd, functools.partial(step_of, found, devices=1), threads=1)
    assert same.within(WHOLE)
    assert same.state["given.num_batches_tracked"] == 0


def test_a_step_with_statistics_of_each_slice_is_not():
    found = capture_program(*residual(), slices=Slices((5, 1, 2)))
    step = functools.partial(step_of, found, devices=1)
    assert not compare(*residual(), sgd, step, steps=1, threads=1).within(100 * WHOLE)


@pytest.mark.parametrize(
    ("build", "shares", "more"),
    [
        (residual, (3, 1), {}),
        (branching, (4, 2, 2), {}),
        (residual, (1, 1, 1, 1), {"replicas": (3, 1)}),
        (residual, (1, 1, 1, 1), {"sums": "tree"}),
    ],
)
def test_a_placed_step_is_equal_to_slices_in_lockstep(
    processes: StartDevices, build: Build, shares: tuple[int, ...], more: dict[str, Any]
):
    found = program(build, shares, **more)
    step = functools.partial(step_of, found, devices=2, start=processes)
    slices = found.graph.slices
    same = compare(*build(), sgd, step, steps=2, threads=1, slices=slices)
    assert same.within(0.0)
    assert bool(same.copies) == ("replicas" in more)


def test_modules_that_run_again_keep_the_statistics():
    found = program(blocks, (3, 1), "layers.0", "layers.2")
    again = [op.kind for op in found.graph.ops if op.recompute]
    assert "aten._native_batch_norm_legit_no_training" in again
    assert "situate.batch_norm_statistics" not in again
    step = functools.partial(step_of, found, devices=1)
    slices = found.graph.slices
    assert compare(*blocks(), sgd, step, threads=1, slices=slices).within(0.0)
