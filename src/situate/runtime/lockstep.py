"""Slices of an unplaced step in lockstep, for batch norms with statistics over all slices.

Each slice runs in a thread of its own. One thread runs at a time, up to its next batch norm. The
norms use the operators of a placed step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, Protocol

from situate.errors import SituateError
from situate.runtime.settings import use_threads as using
from situate.torch_capture.patches.kernel_results import finest
from situate.torch_capture.patches.patched import replaced

if TYPE_CHECKING:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode


SliceRun = Callable[[], Any]


BATCH_COUNTER = "num_batches_tracked"
"""The buffer in which PyTorch's modules count their calls."""


class SliceState(Protocol):
    """The state of a model in some of the slices."""

    def restore(self) -> None:
        """Put the state into the model."""

    def save(self) -> None:
        """Save the model's current state."""


class Lockstep:
    """Concurrent runs of slices with meetings.

    Args:
        places: by slice, the state of the model in it.
    """

    def __init__(self, places: Sequence[SliceState]) -> None:
        self._places = places
        self._turns = [Semaphore(0) for _ in places]
        self._slice, self._meetings = 0, 0
        self._contributions: list[Any] = []
        self._meeting_result: Any = None
        self._error: BaseException | None = None

    def results(self, runs: Sequence[SliceRun]) -> list[Any]:
        """The results of all slices; raises the first error of a slice."""
        values: list[Any] = [None for _ in runs]
        modes = _modes()

        def run(s: int) -> None:
            try:
                self._begin(s)
                with _modes_of_caller(*modes):
                    values[s] = runs[s]()
                self._end(s)
            except BaseException as error:
                self._stop(error)

        # On a CPU, autograd runs a backward pass in the calling thread: a slice keeps to its turn.
        threads = [Thread(target=run, args=(s,), daemon=True) for s in range(len(runs))]
        for thread in threads:
            thread.start()
        self._turns[0].release()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return values

    def meet(self, contribution: Any, combine: Callable[[list[Any]], Any]) -> Any:
        """Combine one contribution of every slice, and return the result to all of them.

        Raises:
            SituateError: the slices have unequal numbers of meetings.
        """
        s, meetings = self._slice, self._meetings
        self._contributions.append(contribution)
        if s == len(self._places) - 1:
            self._check(len(self._contributions) == len(self._places))
            self._meeting_result, self._meetings = combine(self._contributions), meetings + 1
            self._contributions = []
        # The turn passes through all later slices, and returns once the last one has combined.
        self._end(s)
        self._begin(s)
        self._check(self._meetings == meetings + 1)
        return self._meeting_result

    def _begin(self, s: int) -> None:
        self._turns[s].acquire()
        if self._error is not None:
            raise self._error
        self._slice = s
        self._places[s].restore()

    def _end(self, s: int) -> None:
        self._places[s].save()
        self._turns[(s + 1) % len(self._turns)].release()

    def _stop(self, error: BaseException) -> None:
        """Let all slices end."""
        self._error = self._error or error
        for turn in self._turns:
            turn.release()

    def _check(self, is_alike: bool) -> None:
        if not is_alike:
            raise SituateError("slices: they come to unequal numbers of batch norms")


def _modes() -> tuple[list[TorchDispatchMode], int]:
    """The calling thread's PyTorch modes, which are thread-local, and its number of threads."""
    import torch
    from torch.overrides import _get_current_function_mode_stack
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    of_functions = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    return [*of_functions, *_get_current_dispatch_mode_stack()], torch.get_num_threads()


@contextmanager
def _modes_of_caller(modes: Sequence[TorchDispatchMode], count: int) -> Iterator[None]:
    """A block in a new thread with the modes and the number of threads of another."""
    with ExitStack() as stack:
        stack.enter_context(using(count))
        for mode in modes:
            stack.enter_context(mode)
        yield


@contextmanager
def batch_norm_over_slices(
    model: torch.nn.Module, lockstep: Lockstep, slices: int
) -> Iterator[None]:
    """A block in which training batch norms take their statistics over the slices of a lockstep,
    and count all slices as one batch."""
    import torch

    by_itself = torch.batch_norm

    def norm(x: torch.Tensor, *arguments: Any) -> Any:
        # torch.batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps,
        # cudnn)
        trains = arguments[4]
        return _norm().apply(lockstep, x, *arguments) if trains else by_itself(x, *arguments)

    counters = [counter for name, counter in model.named_buffers() if name.endswith(BATCH_COUNTER)]
    starts = [counter.clone() for counter in counters]
    with replaced(torch, "batch_norm", norm):
        yield
    for counter, start in zip(counters, starts, strict=True):
        counter.copy_(start + (counter - start) // slices)


@cache
def _norm() -> Any:
    import torch

    class Norm(torch.autograd.Function):
        """A slice's part of a norm: its arguments are those of `torch.batch_norm`."""

        @staticmethod
        def forward(ctx: Any, lockstep: Lockstep, *arguments: Any) -> torch.Tensor:
            x, weight, bias, *running, _, momentum, ctx.eps, _ = arguments
            running_tensors = [tensor for tensor in running if tensor is not None]
            own = _statistics(
                x,
                [x, *(tensor for tensor in (weight, bias) if tensor is not None), *running_tensors],
            )
            mean, variance, ctx.count = lockstep.meet(
                own,
                lambda contributions: _batch_statistics(contributions, running_tensors, momentum),
            )
            ctx.lockstep, ctx.has_bias = lockstep, bias is not None
            ctx.save_for_backward(x, weight, mean, variance)
            return _normalised(x, weight, bias, mean, variance, ctx.eps)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> Any:
            x, weight, mean, variance = ctx.saved_tensors
            needs_input = ctx.needs_input_grad[1]
            # The gradient at constant statistics; the part through these is added below.
            own, *parts = torch.ops.aten.native_batch_norm_backward(
                *(gradient, x, weight, mean, variance, None, None, False, ctx.eps),
                [needs_input, True, True],
            )
            if needs_input:
                factor, addend = ctx.lockstep.meet(
                    parts,
                    lambda contributions: _gradient_terms(
                        contributions, weight, variance, ctx.eps, ctx.count
                    ),
                )
                own = own + _normalised(x, factor, addend, mean, variance, ctx.eps)
            of_weight, of_bias = (
                part if has else None
                for part, has in zip(parts, (weight is not None, ctx.has_bias), strict=True)
            )
            # One gradient for each argument of `forward`: lockstep, x, weight, bias, and six
            # others.
            return None, own, of_weight, of_bias, *[None] * 6

    return Norm


def _statistics(x: torch.Tensor, tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """Mean, variance and count of each channel of a slice, in the dtype of the kernels'
    statistics."""
    import torch

    others = [i for i in range(x.dim()) if i != 1]
    variance, mean = torch.var_mean(x.to(finest(tensors)), others, correction=0)
    return mean, variance, x.numel() // x.shape[1]


def _batch_statistics(
    contributions: Sequence[tuple[Any, ...]], running: Sequence[torch.Tensor], momentum: float
) -> tuple[Any, ...]:
    """Mean, variance and count of the batch; updates the running averages."""
    from situate.torch_capture.slices.norm_operators import batch_norm_statistics

    means, variances, counts = map(list, zip(*contributions, strict=True))
    mean, variance, *new = batch_norm_statistics(means, variances, counts, running, momentum)
    for old, averaged in zip(running, new, strict=True):
        old.copy_(averaged)
    return mean, variance, sum(counts)


def _gradient_terms(
    contributions: Sequence[Sequence[torch.Tensor]],
    weight: torch.Tensor | None,
    variance: torch.Tensor,
    eps: float,
    count: int,
) -> Any:
    from situate.torch_capture.slices.norm_operators import batch_norm_gradients

    weights, biases = map(list, zip(*contributions, strict=True))
    return batch_norm_gradients(weights, biases, weight, variance, eps, count)


def _normalised(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    import torch

    norm = torch.ops.aten._native_batch_norm_legit_no_training.default
    y: torch.Tensor = norm(x, weight, bias, mean, variance, 0.0, eps)[0]
    return y
