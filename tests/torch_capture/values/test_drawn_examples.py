"""Examples that a builder draws have values, and cost nobody random numbers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from situate.torch_capture.patches.constant_values import constants_known  # noqa: E402
from situate.torch_capture.values.drawn_examples import MAX_DRAWN, random_examples  # noqa: E402


def find_values(make):
    """The values of the tensor that `make` returns on fake tensors."""
    with FakeTensorMode(), constants_known(), random_examples() as values:
        result = make()
        return values(result).values


# Small random inputs have values, and the caller's random numbers do not change.
def test_what_is_drawn_and_made_of_it_has_values():
    words = find_values(lambda: torch.randint(4, 9, (64,)))
    assert words.unique().tolist() == [4, 5, 6, 7, 8]
    mask = find_values(lambda: torch.rand(64) > 0.5)
    assert mask.dtype == torch.bool
    assert 0 < mask.sum() < 64


def marked():
    words = torch.randint(4, 9, (2, 8))
    words[:, 2:5] = 3
    return words


def test_what_is_written_into_it_is_in_it():
    words = find_values(marked)
    assert torch.equal(words == 3, torch.arange(8).expand(2, 8).clamp(2, 4) == torch.arange(8))


def test_two_draws_differ():
    first, second = find_values(lambda: torch.stack([torch.rand(9), torch.rand(9)]))
    assert not torch.equal(first, second)


def test_pytorchs_random_numbers_are_as_they_were():
    before = torch.get_rng_state()
    find_values(lambda: torch.rand(9))
    assert torch.equal(torch.get_rng_state(), before)


# A seeded generator of the program's gives the values that every run has.
def draws(*shapes, seed=3):
    """Draws of these shapes from one generator, and the last of them alone."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(9, shape, generator=generator) for shape in shapes][-1]


def known_values(make):
    with FakeTensorMode(), constants_known(), random_examples() as values:
        return values(make())


@pytest.mark.parametrize("shapes", [[(4, 5)], [(4, 5), (7,)]], ids=["first", "second"])
def test_a_generator_of_the_program_gives_its_own_numbers(shapes):
    last = known_values(lambda: draws(*shapes))
    assert torch.equal(last.values, draws(*shapes))
    assert not last.is_random


def test_numbers_without_a_generator_are_others_each_time():
    assert known_values(lambda: torch.randint(9, (4,))).is_random
    assert known_values(lambda: torch.randint(9, (4,)) == torch.arange(4)).is_random
    assert not known_values(lambda: torch.arange(4)).is_random


def test_a_generator_that_lags_behind_gives_other_numbers():
    """A large draw is not made for real, so the next one starts from another state."""
    last = known_values(lambda: draws((MAX_DRAWN + 1,), (4,)))
    assert last.is_random


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.rand(MAX_DRAWN + 1),
        lambda: torch.empty(3),
        lambda: torch.zeros(3).bernoulli_(0.5),
    ],
    ids=["large", "empty", "in place"],
)
def test_anything_else_has_none(make):
    assert find_values(make) is None
