"""How PyTorch computes for a policy: on one thread, so the same anywhere, without denormals."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

LARGE = 2**18
"""Numbers of a product that are worth a second thread."""

_threads = ContextVar("_threads", default=1)


@contextmanager
def arithmetic() -> Iterator[None]:
    """Within it PyTorch computes on one thread and takes denormal numbers for zero; afterwards both
    are as before.

    A sum that two threads share is rounded differently, and a policy's next draw may turn on the
    last bit. Attention that is all but certain weighs the rest with denormals, each of which takes
    a processor some hundred times as long as another number and adds nothing to a sum.
    """
    threads, flushed = torch.get_num_threads(), _denormals_are_zero()
    token = _threads.set(threads)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(flushed)
        _threads.reset(token)


def threads() -> int:
    """As many as PyTorch had outside `arithmetic`, for what gives the same with any number."""
    return _threads.get()


def product(left: Tensor, right: Tensor) -> Tensor:
    """left @ right without gradients: its two halves on a thread each, where there are two, and the
    same halves where there is one, so the same numbers."""
    result = left.new_empty(len(left), right.shape[1])
    halves = zip(left.tensor_split(2), result.tensor_split(2), strict=True)

    def multiply(half: tuple[Tensor, Tensor]) -> None:
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        torch.mm(half[0], right, out=half[1])

    if threads() < 2 or result.numel() < LARGE:
        list(map(multiply, halves))
    else:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(multiply, halves))
    return result


def _denormals_are_zero() -> bool:
    return not torch.full((1,), 1e-40).mul_(1.0).item()
