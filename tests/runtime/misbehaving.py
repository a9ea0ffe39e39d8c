"""A training step that does harm on one device when a file says so: python -m
tests.runtime.misbehaving FILE trains with it until it is told to stop."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from situate.runtime.processes.step_devices import DeviceWorkers
from situate.runtime.programs.placed import place
from situate.runtime.programs.program import capture_program
from situate.runtime.step import PlacedStep
from tests.runtime.models import Towers, entropy
from tests.runtime.steps import DEVICES, assert_same, optimizer_snapshot, state

HARMFUL = DEVICES[1].name
FILE = "SITUATE_TEST_HARM"
"""The environment variable with the file that names the harm to do; it is done once."""


def kill() -> None:
    """As Linux does it where memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def allocate() -> None:
    """Ask for more than any machine has."""
    torch.empty(2**60, dtype=torch.uint8)


def run_out() -> None:
    """As a GPU says it."""
    raise torch.OutOfMemoryError("CUDA out of memory")


def fail() -> None:
    """As an operator does that was given the wrong thing."""
    raise ValueError("no such thing\nat all")


def wait() -> None:
    """Long enough to be interrupted."""
    time.sleep(3.0)


HARM: dict[str, Callable[[], None]] = {
    harm.__name__: harm for harm in (kill, allocate, run_out, fail, wait)
}


@torch.library.custom_op("situate_tests::harm", mutates_args=())
def harm(x: Tensor) -> Tensor:
    """The same numbers, unless a file says otherwise."""
    file = Path(os.environ.get(FILE, os.devnull))
    if os.environ.get("SITUATE_DEVICE") == HARMFUL and file.is_file():
        how = HARM[file.read_text()]
        file.unlink()
        how()
    return x.clone()


@torch.library.custom_op("situate_tests::pass_on", mutates_args=())
def pass_on(x: Tensor) -> Tensor:
    """The same numbers; its gradient does harm."""
    return x.clone()


harm.register_fake(torch.empty_like)
pass_on.register_fake(torch.empty_like)
pass_on.register_autograd(lambda ctx, gradient: harm(gradient))


class Harmful(Towers):
    """Harm is done after the head is updated and before the left branch is. Random numbers tell
    whether a step that is repeated is the same one."""

    def forward(self, x: Tensor) -> Tensor:
        right = functional.dropout(torch.tanh(self.right(x)), 0.3)
        both = pass_on(self.left(x)), right
        out: Tensor = self.head(torch.cat(both, 1))
        return out


def model_parts() -> tuple[nn.Module, tuple[Tensor, ...], Callable[..., Tensor]]:
    """Model, inputs, loss."""
    torch.manual_seed(1)
    return Harmful(), (torch.randn(8, 6), torch.randint(3, (8,))), entropy


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    """Two moments and a count a parameter."""
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def step_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> PlacedStep:
    """The right branch on the first device, all else on the one that does harm."""
    _, inputs, loss = model_parts()
    program = capture_program(model, inputs, loss, optimizer="adamw")
    graph = program.graph
    placement = np.array([int(op.module != "right") for op in graph.ops], np.int32)
    names = [op.name for op in graph.ops]
    assert names.index("head.weight/adamw") < names.index("harm")
    return PlacedStep(
        place(program, placement, range(len(names)), 2), model, optimizer, DEVICES[:2]
    )


def workers(step: PlacedStep) -> list[int]:
    """The ids of its processes."""
    assert isinstance(step._devices, DeviceWorkers)
    return step._devices.pids


def main(file: Path) -> None:
    """Train two steps, say which processes run, be interrupted in the third, have it undone."""
    model, inputs, _ = model_parts()
    optimizer = optimizer_of(model)
    step = step_of(model, optimizer)
    for _ in range(2):
        step(*inputs)
    before = {**state(model), **optimizer_snapshot(model, optimizer)}
    file.write_text("wait")
    print(*workers(step), flush=True)
    try:
        while True:
            step(*inputs)
    except KeyboardInterrupt:
        assert_same({**state(model), **optimizer_snapshot(model, optimizer)}, before)
        print("undone", flush=True)
        raise


if __name__ == "__main__":
    torch.set_num_threads(1)
    from tests.runtime import misbehaving

    os.environ[FILE] = sys.argv[1]
    misbehaving.main(Path(sys.argv[1]))
