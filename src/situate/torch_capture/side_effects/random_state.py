"""State of random numbers: of PyTorch, which a step may not set, and of Python and NumPy."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping
from typing import Any

from situate.torch_capture.patches.patched import replaced
from situate.torch_capture.refusals.remedies import Unsupported

SEEDS = (
    "the step sets, forks or asks for the state of random numbers (torch.manual_seed, "
    "torch.random.fork_rng and their like), and a placed step has its own, of its seed and number: "
    "leave it out, or make the numbers outside of the step and give them as an input or a buffer"
)
State = tuple[Any, ...]

OF_GPUS = ("manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed", "set_rng_state")


@contextlib.contextmanager
def seeds_are_given() -> Iterator[None]:
    """Refuse to set the state of PyTorch's random numbers. The step may read it, as
    `torch.utils.checkpoint` does."""
    import torch

    generator = torch.default_generator
    # `torch.manual_seed` and its like look the generator up in two modules.
    refusing = _Generator(generator)
    with contextlib.ExitStack() as stack:
        for module in (torch, torch.random):
            stack.enter_context(replaced(module, "default_generator", refusing))
        for module in (torch.cuda, torch.cuda.random):
            for name in (*OF_GPUS, "set_rng_state_all"):
                stack.enter_context(replaced(module, name, _refuse))
        yield


class _Generator:
    """Stands for PyTorch's generator, and refuses to be set."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        self.device = generator.device
        self.get_state = generator.get_state

    def __getattr__(self, name: str) -> Any:
        return _refuse


def _refuse(*_: object, **__: object) -> Any:
    raise Unsupported(SEEDS)


def state_of_chance() -> bytes:
    """The state of PyTorch's generator, also where tensors are fake."""
    import torch
    from torch.utils._mode_utils import no_dispatch

    with no_dispatch():
        state: bytes = torch.get_rng_state().numpy().tobytes()
    return state


def numbers_of_python() -> dict[str, State]:
    """The states of the random numbers of Python and NumPy, by module."""
    import numpy as np

    state: Any = np.random.get_state()  # noqa: NPY002
    kind, keys, *place = state
    return {"random": random.getstate(), "numpy.random": (kind, keys.tobytes(), *place)}


def put_back(states: Mapping[str, State]) -> None:
    """Restore the states of the random numbers of Python and NumPy."""
    import numpy as np

    random.setstate(states["random"])
    kind, keys, *place = states["numpy.random"]
    np.random.set_state((kind, np.frombuffer(keys, np.uint32), *place))  # noqa: NPY002


ENDS = (0.0, 1 - 2**-53)
"""The smallest and the largest uniform number that Python and NumPy draw from 0 to 1."""


@contextlib.contextmanager
def uniform_numbers(share: float) -> Iterator[None]:
    """A block in which single uniform numbers of Python and NumPy from `low` to `high` lie at a
    `share` of the way. Other draws are unchanged."""
    import numpy as np

    def between(low: float = 0.0, high: float = 1.0) -> float:
        return low + share * (high - low)

    def one(draw: Any) -> Any:
        return lambda *sizes: draw(*sizes) if sizes else share

    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            (random, "random", lambda: share),
            (random, "uniform", between),
            (np.random, "random", one(np.random.random)),
            (np.random, "rand", one(np.random.rand)),
        ):
            stack.enter_context(replaced(owner, name, value))
        yield
