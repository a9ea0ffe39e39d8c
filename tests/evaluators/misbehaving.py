"""A model whose operators do harm on one device, `cpu:1`, and none elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

HARMFUL = "cpu:1"
COUNTS = "SITUATE_TEST_COUNTS"
"""The environment variable with the file that stands for /proc/vmstat."""
CHILDREN = "SITUATE_TEST_CHILDREN"
"""The environment variable with the file in which `hang` lists its child processes."""


def crash() -> None:
    """As by a fault in a kernel."""
    os.kill(os.getpid(), signal.SIGSEGV)


def hang() -> None:
    """Start a process and wait for ever."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(os.environ[CHILDREN]).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)


def no_memory() -> None:
    """Ask for more than any machine has."""
    torch.empty(2**60, dtype=torch.uint8)


def killed() -> None:
    """As Linux does it where memory is short: it counts that, and kills."""
    Path(os.environ[COUNTS]).write_text("oom_kill 1\n")
    os.kill(os.getpid(), signal.SIGKILL)


WAYS: dict[str, Callable[[], None]] = {
    way.__name__: way for way in (crash, hang, no_memory, killed)
}


def _operator(name: str, harm: Callable[[], None]) -> Callable[[Tensor], Tensor]:
    def run(x: Tensor) -> Tensor:
        if os.environ.get("SITUATE_DEVICE") == HARMFUL:
            harm()
        return x.clone()

    answer = torch.library.custom_op(
        f"situate_tests::{name}", run, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    answer.register_fake(torch.empty_like)
    return answer


OPERATORS = [_operator(name, way) for name, way in WAYS.items()]


@torch.library.custom_op("situate_tests::no_number", mutates_args=())
def no_number(x: Tensor) -> Tensor:
    """Not a number, on the harmful device."""
    return x * (torch.nan if os.environ.get("SITUATE_DEVICE") == HARMFUL else 1.0)


no_number.register_fake(torch.empty_like)


class Misbehaving(nn.Module):
    """All of them in turn, on the input; then a product, with a state to be poisoned."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for operator in (*OPERATORS, no_number):
            x = operator(x)
        mean: Tensor = self.layer(x).mean()
        return mean


def build() -> tuple[nn.Module, tuple[Tensor, ...], Callable[..., Tensor]]:
    """Model, inputs, loss."""
    torch.manual_seed(0)
    return Misbehaving(), (torch.ones(2, 4),), lambda model, x: model(x)
