"""How PyTorch computes for a policy: on one thread, so the same anywhere, without denormals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def arithmetic() -> Iterator[None]:
    """Within it PyTorch computes on one thread and takes denormal numbers for zero; afterwards both
    are as before.

    A sum that two threads share is rounded differently, and a policy's next draw may turn on the
    last bit. The matrices of a policy are so small that more threads save little. Attention that is
    all but certain weighs the rest with denormals, each of which takes a processor some hundred
    times as long as another number and adds nothing to a sum.
    """
    threads, flushed = torch.get_num_threads(), _denormals_are_zero()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(flushed)


def _denormals_are_zero() -> bool:
    return not torch.full((1,), 1e-40).mul_(1.0).item()
