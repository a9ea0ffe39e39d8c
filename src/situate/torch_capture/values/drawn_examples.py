"""Example inputs of a model that is built on fake tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from situate.torch_capture.patches.patched import dispatched
from situate.torch_capture.values.followed import Followed, followed

MAX_DRAWN = 2**16
"""Numbers of a tensor that is drawn for real, those of 32 sentences of 2,048 words."""

Values = Callable[[Any], Any]
"""From a tensor to a real one with its values; None where they are not known."""


@contextmanager
def examples_drawn() -> Iterator[Values]:
    """Draw what is random in small tensors for real, so that inputs made of it have values. The
    random numbers of the program's owner are as they were."""
    from torch._subclasses.fake_tensor import FakeTensor

    values, draws = Followed(), _Draws()

    def called(run: Any, mode: Any, func: Any, args: Any, kwargs: Any) -> Any:
        made = followed(values, run, func, args, kwargs)
        if _is_draw(func, made) and values.depth == 0:
            values.give(made, draws.draw(func, args, kwargs), 0)
        return made

    def find(tensor: Any) -> Any:
        if not isinstance(tensor, FakeTensor):
            return tensor
        return values.of(tensor) if tensor.constant is None else tensor.constant

    with dispatched(called):
        yield find


def _is_draw(func: Any, made: Any) -> bool:
    """True for an operator that makes a small tensor of chance alone."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    if torch.Tag.nondeterministic_seeded not in getattr(func, "tags", ()):
        return False
    kinds = [str(argument.type) for argument in func._schema.arguments]
    alone = not any("Tensor" in kind or "Generator" in kind for kind in kinds)
    return alone and isinstance(made, FakeTensor) and made.numel() <= MAX_DRAWN


class _Draws:
    """A stream of random numbers of its own, which begins with PyTorch's."""

    def __init__(self) -> None:
        import torch

        self._state = torch.get_rng_state()

    def draw(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operator that draws."""
        import torch
        from torch.utils._mode_utils import no_dispatch

        with no_dispatch():
            before = torch.get_rng_state()
            torch.set_rng_state(self._state)
            try:
                return func(*args, **{**kwargs, "device": "cpu"})
            finally:
                self._state = torch.get_rng_state()
                torch.set_rng_state(before)
