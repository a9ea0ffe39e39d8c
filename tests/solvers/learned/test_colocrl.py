"""ColocRL: its estimator is that of the gradient, with the paper's rewards, and it learns."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.problem import Problem  # noqa: E402
from situate.grouping import make_groups  # noqa: E402
from situate.policies.arithmetic import arithmetic  # noqa: E402
from situate.policies.gradient_ascent import Ascent  # noqa: E402
from situate.policies.group_policy import GroupPolicy  # noqa: E402
from situate.policies.shapes import Shape  # noqa: E402
from situate.solvers.learned.colocrl import PAPER, TUNED, Reinforce, objective  # noqa: E402
from tests.solvers.families import devices, fork  # noqa: E402
from tests.solvers.learning import (  # noqa: E402
    beats_its_first_sixty,
    groups_as_asked,
    says_what_to_install,
)


@pytest.fixture(autouse=True)
def _quietly():
    """Threads that wait for one another cost more than these matrices."""
    with arithmetic():
        yield


def policy():
    problem = Problem(fork(3), devices(1, 1))
    groups = make_groups(problem, np.arange(problem.units))
    draws = torch.Generator().manual_seed(0)
    policy = GroupPolicy(problem, groups, Shape(4), draws)
    torch.nn.init.normal_(policy.placer.head.weight, generator=draws)
    return policy


# The estimator is unbiased, and its rewards and baseline are those of the paper.


def test_over_all_placements_the_estimate_is_the_gradient_whatever_the_baseline():
    model = policy()
    parameters = list(model.parameters())
    every = torch.tensor(list(itertools.product(range(2), repeat=3)))
    rewards = torch.arange(1.0, 9.0)
    log_probs = model.log_probs(every)
    chosen = log_probs.gather(2, every.unsqueeze(2)).sum((1, 2))
    true = torch.autograd.grad((chosen.exp() * rewards).sum(), parameters, retain_graph=True)
    gains = (3.5 - rewards) * chosen.detach().exp() * len(every)
    result = torch.autograd.grad(objective(log_probs, every, gains), parameters)
    for one, other in zip(result, true, strict=True):
        torch.testing.assert_close(one, -other, rtol=1e-3, atol=1e-5)


def test_the_reward_is_the_root_and_the_baseline_its_moving_average():
    update = Reinforce(PAPER)
    np.testing.assert_allclose(update._advantages(np.array([4.0, 16.0])), [1.0, -1.0])
    np.testing.assert_allclose(update._advantages(np.array([1.0])), [2.0])
    np.testing.assert_allclose(update._advantages(np.array([1.0])), [0.9 * 3 + 0.1 * 1 - 1])


@pytest.mark.parametrize("count", [3, TUNED.K])
def test_normalised_a_batch_of_equal_times_is_weighed_against_the_baseline(count):
    update = Reinforce(dataclasses.replace(PAPER, normalise=True))
    np.testing.assert_allclose(update._advantages(np.full(count, 4.0)), 0, atol=1e-6)
    np.testing.assert_allclose(update._advantages(np.full(count, 100.0)), -1)
    np.testing.assert_allclose(update._advantages(np.full(count, 1.0)), 1)


# Late in a search, failed placements no longer enter the gradient.


def late(ok):
    """The distance that the parameters move after update number `late`."""
    model = policy()
    ascent, update = Ascent(model, "adam", 0.1), Reinforce(dataclasses.replace(PAPER, late=1))
    actions, times = torch.tensor([[0, 0, 0], [1, 1, 1]]), np.array([1.0, 4.0])
    update.update(model, ascent, actions, times, np.ones(2, np.bool_))
    before = ascent.state()["parameters"].copy()
    update.update(model, ascent, actions, times, np.array(ok))
    return ascent.state()["parameters"] - before, update.numbers


def test_late_on_placements_that_failed_are_left_out():
    both, _ = late([True, True])
    one, numbers = late([True, False])
    assert np.abs(one).any()
    assert not np.array_equal(one, both)
    assert numbers[0] == pytest.approx(0.9 * 1.5 + 0.1 * 1.0)


def test_late_on_a_batch_that_failed_changes_nothing_but_the_count():
    none, numbers = late([False, False])
    assert not none.any()
    assert numbers.tolist() == [1.5, 2.0]


# As a method: it learns, names its extra, and follows `Learning.grouping`.


def test_it_beats_the_best_of_its_first_sixty_samples_by_a_tenth():
    assert beats_its_first_sixty("colocrl")


def test_without_pytorch_it_says_what_to_install(monkeypatch):
    assert says_what_to_install("colocrl", monkeypatch)


def test_a_grouping_asked_for_goes_before_that_of_the_settings():
    assert groups_as_asked("colocrl")
