"""Values of example inputs that a program draws at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from situate.torch_capture.patches.patched import dispatched
from situate.torch_capture.values.followed import Followed, followed

if TYPE_CHECKING:
    import torch

MAX_DRAWN = 2**16
"""The most numbers of a tensor that is drawn for real (32 sentences of 2,048 words)."""

RANDOM, ALIKE = 1, 0
"""Origins of values: draws that differ in each run of the program, and all else."""


class KnownValues(NamedTuple):
    """A real tensor with the values of another.

    Attributes:
        values: the real tensor; None if the values are not known.
        is_random: the values differ each time that the program runs.
    """

    values: Any
    is_random: bool = False


FindValues = Callable[[Any], KnownValues]
"""From a tensor to its values."""


@contextmanager
def random_examples() -> Iterator[FindValues]:
    """A block in which small random tensors are drawn for real, so that inputs made from them have
    values.

    The caller's random numbers are unchanged. A generator of the program's own gives the same
    numbers as without capture.
    """
    from torch._subclasses.fake_tensor import FakeTensor

    values, draws = Followed(), _Draws()

    def run_followed(run: Any, mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
        result = followed(values, run, func, args, kwargs)
        if values.depth == 0 and _is_random(func):
            if _is_draw(func, result):
                values.assign(result, draws.draw(func, args, kwargs), draws.kind(kwargs))
            else:
                draws.leave_behind(kwargs)
        return result

    def find(tensor: Any) -> KnownValues:
        if not isinstance(tensor, FakeTensor):
            return KnownValues(tensor)
        if tensor.constant is not None:
            return KnownValues(tensor.constant)
        real = values.of(tensor)
        return KnownValues(real, real is not None and RANDOM in values.made_of(real))

    with dispatched(run_followed):
        yield find


def _is_random(func: Any) -> bool:
    import torch

    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())


def _is_draw(func: Any, result: Any) -> bool:
    """True for a random operator that makes a small tensor from randomness alone."""
    from torch._subclasses.fake_tensor import FakeTensor

    # Operators such as dropout also read a tensor, whose values may be unknown.
    alone = not any("Tensor" in str(argument.type) for argument in func._schema.arguments)
    return alone and isinstance(result, FakeTensor) and result.numel() <= MAX_DRAWN


class _Draws:
    """A separate stream of random numbers that begins with PyTorch's state, and the program's
    generators."""

    def __init__(self) -> None:
        import torch

        self._state = torch.get_rng_state()
        self._behind: list[torch.Generator] = []

    def kind(self, kwargs: Mapping[str, Any]) -> int:
        """`ALIKE` for a draw from a generator all of whose draws so far were real."""
        generator = kwargs.get("generator")
        behind = any(other is generator for other in self._behind)
        return RANDOM if generator is None or behind else ALIKE

    def leave_behind(self, kwargs: Mapping[str, Any]) -> None:
        """Record a draw on fake tensors, which does not advance its generator."""
        if (generator := kwargs.get("generator")) is not None:
            self._behind.append(generator)

    def draw(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operator that draws."""
        import torch
        from torch.utils._mode_utils import no_dispatch

        # The fake mode would draw nothing.
        with no_dispatch():
            if kwargs.get("generator") is not None:
                return func(*args, **{**kwargs, "device": kwargs["generator"].device}).cpu()
            before = torch.get_rng_state()
            torch.set_rng_state(self._state)
            try:
                return func(*args, **{**kwargs, "device": "cpu"})
            finally:
                self._state = torch.get_rng_state()
                torch.set_rng_state(before)
