"""A model whose step does the harm that was ordered, once, whichever worker runs it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor, nn

FOLDER = "SITUATE_TEST_HARM"
"""The environment variable with a folder of files, each of which does one harm and is gone."""


def end_device() -> None:
    """As by a fault in a kernel."""
    os.kill(os.getpid(), signal.SIGSEGV)


def end_worker() -> None:
    """As if somebody killed the process that measures."""
    os.kill(os.getppid(), signal.SIGKILL)


def hang() -> None:
    """Never go on."""
    time.sleep(600)


HARMS: dict[str, Callable[[], None]] = {
    harm.__name__: harm for harm in (end_device, end_worker, hang)
}


def order(harm: Callable[[], None]) -> None:
    """Let the next step do this harm."""
    Path(os.environ[FOLDER], harm.__name__).touch()


@torch.library.custom_op("situate_tests::harmed_once", mutates_args=())
def harmed_once(x: Tensor) -> Tensor:
    """The same, unless there is an order."""
    for file in sorted(Path(os.environ[FOLDER]).iterdir()):
        with suppress(FileNotFoundError):  # another device was first
            file.unlink()
            HARMS[file.name]()
    return x.clone()


harmed_once.register_fake(torch.empty_like)


class Harmed(nn.Module):
    """A product of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        mean: Tensor = self.layer(harmed_once(x)).mean()
        return mean


def build() -> tuple[nn.Module, tuple[Tensor, ...], Callable[..., Tensor]]:
    """Model, inputs, loss."""
    return Harmed(), (torch.ones(2, 4),), lambda model, x: model(x)
