"""Slices that run in turns, and batch norms over all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from situate.data.slices import Slices
from situate.errors import SituateError
from situate.runtime.equality import UnplacedOptions, compare
from situate.runtime.lockstep import Lockstep
from situate.runtime.programs.program import Program, capture_program
from situate.runtime.step import StartDevices
from tests.runtime.lockstep_models import branching, residual
from tests.runtime.placing import sgd
from tests.runtime.steps import step_of
from tests.torch_capture.recompute.models import blocks

torch = pytest.importorskip("torch")


class Place:
    """Notes who enters and leaves it."""

    def __init__(self, log, name):
        self._log, self._name = log, name

    def restore(self):
        self._log.append(f"+{self._name}")

    def save(self):
        self._log.append(f"-{self._name}")


def lockstep(count=3, log=None):
    log = [] if log is None else log
    return Lockstep([Place(log, s) for s in range(count)])


# Turns and meetings.
def test_slices_take_turns_and_get_what_is_made_of_all():
    log = []
    steps = lockstep(2, log)

    def run(s):
        total = steps.meet(s + 1, sum)
        log.append(f"{s}: {total}")
        return steps.meet(10 * s, list)

    assert steps.results([lambda: run(0), lambda: run(1)]) == [[0, 10], [0, 10]]
    assert log == [
        *("+0", "-0", "+1", "-1", "+0", "0: 3", "-0", "+1", "1: 3", "-1"),
        *("+0", "-0", "+1", "-1"),
    ]


@pytest.mark.parametrize("meetings", [(2, 1, 2), (1, 2, 2), (2, 2, 1), (1, 1, 2), (0, 1, 1)])
def test_unequal_numbers_of_meetings_are_an_error(meetings):
    steps = lockstep()

    def run(count):
        for _ in range(count):
            steps.meet(1, sum)

    with pytest.raises(SituateError, match="unequal numbers of batch norms"):
        steps.results([lambda count=count: run(count) for count in meetings])


@pytest.mark.parametrize("failing", range(3))
def test_the_error_of_a_slice_ends_all(failing):
    steps = lockstep()

    def run(s):
        steps.meet(s, sum)
        if s == failing:
            raise ValueError(f"slice {s}")
        steps.meet(s, sum)

    with pytest.raises(ValueError, match=f"slice {failing}"):
        steps.results([lambda s=s: run(s) for s in range(3)])


def test_threads_have_the_modes_of_the_caller():
    from torch.utils._python_dispatch import TorchDispatchMode

    slices_seen = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            slices_seen.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    with Seeing():
        lockstep(2).results([lambda: torch.ones(2) + 1] * 2)
    assert slices_seen.count("aten::add") == 2


torch = pytest.importorskip("torch")


WHOLE = 1e-5
"""The largest difference from the whole batch's step, where numbers add up in another order."""

Build = Callable[[], Any]


def program(build: Build, shares: tuple[int, ...], *again: str, **more: Any) -> Program:
    slices = Slices(shares, batch_norm="batch", **more)
    return capture_program(*build(), slices=slices, recompute=again)


# Batch norms against the whole batch and against placed steps.
def test_a_step_is_that_of_the_whole_batch():
    losses = program(residual, (5, 1, 2))
    assert not any(text.startswith("slices: ") for text in losses.graph.warnings)
    same = compare(*residual(), sgd, functools.partial(step_of, losses, devices=1), threads=1)
    assert same.within(WHOLE)
    assert same.state["given.num_batches_tracked"] == 0


def test_a_step_with_statistics_of_each_slice_is_not():
    losses = capture_program(*residual(), slices=Slices((5, 1, 2)))
    step = functools.partial(step_of, losses, devices=1)
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
    losses = program(build, shares, **more)
    step = functools.partial(step_of, losses, devices=2, start=processes)
    slices = losses.graph.slices
    same = compare(*build(), sgd, step, steps=2, threads=1, unplaced=UnplacedOptions(slices=slices))
    assert same.within(0.0)
    assert bool(same.copies) == ("replicas" in more)


def test_modules_that_run_again_keep_the_statistics():
    losses = program(blocks, (3, 1), "layers.0", "layers.2")
    again = [op.kind for op in losses.graph.ops if op.recompute]
    assert "aten._native_batch_norm_legit_no_training" in again
    assert "situate.batch_norm_statistics" not in again
    step = functools.partial(step_of, losses, devices=1)
    slices = losses.graph.slices
    assert compare(*blocks(), sgd, step, threads=1, unplaced=UnplacedOptions(slices=slices)).within(
        0.0
    )
