"""Draws depend on the seed, the step and their rank alone."""

from __future__ import annotations

import contextlib
import threading

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.programs.seeds import kept_generator, seed_of, seeded_draws  # noqa: E402


# Seeds.
def test_every_draw_has_a_seed_of_its_own() -> None:
    cases = [(seed, step, draw) for seed in range(3) for step in range(12) for draw in range(12)]
    seeds = {seed_of(*case) for case in cases}
    assert len(seeds) == len(cases)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_seeds_are_the_same_on_every_machine() -> None:
    assert seed_of(0, 1, 2) == 6895709204078334967


# Draws of an unplaced step, and PyTorch's own generator.
def test_a_draw_does_not_depend_on_what_was_drawn_before() -> None:
    with kept_generator(), seeded_draws(5, 2):
        torch.randn(3)
        second = torch.randn(3)
    with kept_generator():
        torch.manual_seed(seed_of(5, 2, 1))
        assert torch.equal(torch.randn(3), second)


def test_a_restored_generator_repeats_its_draws() -> None:
    with kept_generator(), seeded_draws(5, 2):
        first, before = torch.randn(3), torch.get_rng_state()
        draws = [torch.randn(3), torch.rand(2)]
        torch.set_rng_state(before)
        again = [torch.randn(3), torch.rand(2)]
        assert all(map(torch.equal, draws, again))
        assert not any(torch.equal(torch.randn(3), other) for other in (first, draws[0]))


def test_draws_of_nothing_have_ranks_too() -> None:
    with kept_generator(), seeded_draws(5, 2):
        torch.randn(0)
        torch.randn(0)
        third = torch.randn(3)
    with kept_generator():
        torch.manual_seed(seed_of(5, 2, 2))
        assert torch.equal(torch.randn(3), third)


def test_the_generator_is_left_as_it_was() -> None:
    before = torch.get_rng_state()
    with contextlib.suppress(ValueError), kept_generator(), seeded_draws(0, 1):
        torch.rand(2)
        raise ValueError
    assert torch.equal(torch.get_rng_state(), before)


def test_deterministic_ops_are_not_seeded() -> None:
    before = torch.get_rng_state()
    with seeded_draws(0, 1):
        assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]
    assert torch.equal(torch.get_rng_state(), before)


def test_threads_take_turns_at_the_generator() -> None:
    inside: list[str] = []

    def draw() -> None:
        with kept_generator():
            inside.append("other")

    with kept_generator(), kept_generator():
        thread = threading.Thread(target=draw)
        thread.start()
        thread.join(0.1)
        inside.append("first")
    thread.join()
    assert inside == ["first", "other"]
