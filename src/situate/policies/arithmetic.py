"""PyTorch's arithmetic for a policy: one thread, no denormals, and calls of the core.

So the same seed gives the same numbers on any machine with the same instruction set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from situate.host.machine import thread_limit

THREADED_MULTIPLICATIONS = 2**26
"""Multiplications of a matrix product, about a millisecond, from which a second thread pays."""

MAX_THREADS = 4
"""Most threads for steps of ten microseconds; more would wait for one another."""

_threads = ContextVar("_threads", default=1)


@contextmanager
def arithmetic() -> Iterator[None]:
    """A block in which PyTorch computes on one thread and flushes denormal numbers to zero.

    Two threads that share a sum round it differently, and a policy's next draw may depend on the
    last bit. Saturated attention produces denormals, which cost a processor about a hundred times
    as long as other numbers and add nothing to a sum. Both settings are restored afterwards.
    """
    thread_count, flushed = torch.get_num_threads(), _denormals_are_zero()
    token = _threads.set(thread_limit(thread_count))
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(thread_count)
        torch.set_flush_denormal(flushed)
        _threads.reset(token)


def thread_count() -> int:
    """Threads for functions whose result does not depend on their number: PyTorch's count outside
    `arithmetic`, within the caller's limit and `MAX_THREADS`."""
    return min(_threads.get(), MAX_THREADS)


def product(a: Tensor, b: Tensor) -> Tensor:
    """left @ right of two matrices, with its gradient.

    Large products are computed in two halves, on two threads if there are two. One thread computes
    the same halves, so the numbers are equal.
    """
    result: Tensor = _Product.apply(a, b)  # type: ignore[no-untyped-call]
    return result


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return _product_by_halves(a, b)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        of_left, of_right = ctx.needs_input_grad
        return (
            _product_by_halves(gradients[0], b.t()) if of_left else None,
            _product_by_halves(a.t(), gradients[0]) if of_right else None,
        )


def _product_by_halves(a: Tensor, b: Tensor) -> Tensor:
    result = a.new_empty(len(a), b.shape[1])
    if result.numel() * a.shape[1] < THREADED_MULTIPLICATIONS:
        return torch.mm(a, b, out=result)
    # Rows in two halves: every entry of the product is still summed by one thread in one order.
    halves = list(zip(a.tensor_split(2), result.tensor_split(2), strict=True))

    def multiply(half: tuple[Tensor, Tensor]) -> None:
        with torch.no_grad():
            torch.mm(half[0], b, out=half[1])

    if thread_count() < 2:
        list(map(multiply, halves))
    else:
        with ThreadPoolExecutor(2, initializer=_set_up_thread) as pool:
            list(pool.map(multiply, halves))
    return result


def _set_up_thread() -> None:
    """Give a new thread the settings of `arithmetic`."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def _denormals_are_zero() -> bool:
    # 1e-40 is denormal in single precision.
    return not torch.full((1,), 1e-40).mul_(1.0).item()


def array(tensor: Tensor) -> NDArray[Any]:
    """The numbers of a tensor as a contiguous array; copied only if it has gaps."""
    numbers: NDArray[Any] = tensor.detach().contiguous().numpy()
    return numbers


def call_core(function: Callable[..., Any], *tensors: Tensor) -> list[Tensor]:
    """Call a function of the core on tensors, and return its results as tensors."""
    result = function(*map(array, tensors), threads=thread_count())
    arrays = result if isinstance(result, tuple) else (result,)
    return [torch.from_numpy(numbers) for numbers in arrays]
