"""Random numbers independent of the placement: every draw has a seed of its own, from the step's
number and the draw's rank in the unplaced step."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.utils._python_dispatch import TorchDispatchMode

_GENERATOR_LOCK = threading.RLock()
"""PyTorch's generators belong to the process, so one thread at a time seeds them."""


def seed_of(seed: int, step: int, draw: int) -> int:
    """A seed below 2^63 for draw number `draw` of step number `step`."""
    digest = hashlib.blake2b(f"{seed} {step} {draw}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


@contextlib.contextmanager
def kept_generator() -> Iterator[None]:
    """A block that leaves PyTorch's generators unchanged, including those of GPUs in use; one
    thread at a time."""
    import torch

    with _GENERATOR_LOCK:
        before = torch.get_rng_state()
        in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        of_gpus = torch.cuda.get_rng_state_all() if in_use else []
        try:
            yield
        finally:
            torch.set_rng_state(before)
            torch.cuda.set_rng_state_all(of_gpus)


def seeded_draws(seed: int, step: int) -> TorchDispatchMode:
    """A mode in which an unplaced step draws the numbers of a placed step.

    A draw from an earlier draw's generator state repeats that draw. So a checkpoint's
    recomputation, which restores the state, repeats its forward pass.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seeded(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            # Every draw leaves a state of its own behind, that of its seed.
            self.ranks: dict[bytes, int] = {}

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if torch.Tag.nondeterministic_seeded in func.tags:
                state = torch.get_rng_state().numpy().tobytes()
                rank = self.ranks.setdefault(state, len(self.ranks))
                torch.manual_seed(seed_of(seed, step, rank))
            return func(*args, **(kwargs or {}))

    return Seeded()
