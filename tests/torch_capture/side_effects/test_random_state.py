"""The seed of a step's random numbers is not its own to set."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture.refusals.errors import Unsupported  # noqa: E402
from situate.torch_capture.side_effects.random_state import (  # noqa: E402
    ENDS,
    numbers_of_python,
    put_back,
    seeds_are_given,
    state_of_chance,
    uniform_numbers,
)
from tests.readers.calling import of  # noqa: E402


# A step may not set PyTorch's random numbers.
def forked() -> None:
    with torch.random.fork_rng():
        pass


@pytest.mark.parametrize(
    "seed",
    [
        lambda: torch.manual_seed(0),
        lambda: torch.random.manual_seed(0),
        lambda: torch.default_generator.manual_seed(0),
        lambda: torch.default_generator.set_state(torch.get_rng_state()),
        lambda: torch.set_rng_state(torch.get_rng_state()),
        lambda: torch.cuda.manual_seed(0),
        lambda: torch.cuda.manual_seed_all(0),
        torch.seed,
        torch.initial_seed,
        forked,
    ],
)
def test_whoever_sets_or_asks_for_a_seed_is_refused(seed: Callable[[], object]) -> None:
    before = state_of_chance()
    with (
        seeds_are_given(),
        pytest.raises(Unsupported, match=r"torch.manual_seed, .*: leave it out"),
    ):
        seed()
    assert state_of_chance() == before
    torch.set_rng_state(torch.get_rng_state())


def test_capture_names_the_line() -> None:
    def step(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return model.layer(x + torch.randn_like(x))  # type: ignore[operator, no-any-return]

    with pytest.raises(
        SituateError, match=r"test_random_state.py:\d+: the step sets, forks or asks for"
    ):
        of(step)


def test_a_generator_that_was_taken_before_is_noticed() -> None:
    generator = torch.default_generator
    with pytest.raises(SituateError, match="the step sets, forks or asks for the state of random"):
        of(lambda model, x: (generator.manual_seed(7), model.layer(x))[1])


# The random numbers of Python and NumPy can be restored and replaced.
def test_the_numbers_of_python_can_be_put_back() -> None:
    states = numbers_of_python()
    numbers = random.random(), np.random.rand()  # noqa: NPY002
    assert numbers_of_python() != states
    put_back(states)
    assert (random.random(), np.random.rand()) == numbers  # noqa: NPY002


@pytest.mark.parametrize("share", ENDS)
def test_single_uniform_numbers_may_be_given_and_are_then_not_drawn(share: float) -> None:
    before = numbers_of_python()
    with uniform_numbers(share):
        assert random.random() == np.random.rand() == np.random.random() == share  # noqa: NPY002
        assert random.uniform(2, 4) == 2 + 2 * share
        assert numbers_of_python() == before
        np.random.rand(3)  # noqa: NPY002
        assert numbers_of_python()["numpy.random"] != before["numpy.random"]
    assert random.random() not in ENDS
